"""Not here: importing it says why."""

raise ImportError(
    "horovod.mxnet is not part of Farandole: MXNet has been retired. farandole.numpy works on "
    "arrays of any origin"
)
