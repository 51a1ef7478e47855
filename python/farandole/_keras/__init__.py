"""What farandole.keras and farandole.tensorflow.keras have in common, for Keras 3 and Keras 2."""
