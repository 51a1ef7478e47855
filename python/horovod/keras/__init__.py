"""Not here: importing it says why."""

raise ImportError(
    "horovod.keras: Farandole does not support TensorFlow and Keras yet"
)
