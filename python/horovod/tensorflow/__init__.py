"""Not here: importing it says why."""

raise ImportError(
    "horovod.tensorflow: Farandole does not support TensorFlow yet"
)
