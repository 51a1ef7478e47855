"""Not here: importing it says why."""

raise ImportError(
    "horovod.ray is not part of Farandole: start the job with `farandole run`, or from Python "
    "with farandole.run()"
)
