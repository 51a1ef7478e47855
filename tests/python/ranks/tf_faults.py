"""Model.fit() in which one rank fails: tf_faults.py HOW."""

from __future__ import annotations

import os
import signal
import sys
import time

import numpy as np
import tensorflow as tf

import farandole.tensorflow.keras as hvd

how = sys.argv[1]
# The launcher ends the others at once; here they are to tell what they have heard.
signal.signal(signal.SIGTERM, signal.SIG_IGN)
hvd.init()


class Culprit(tf.keras.callbacks.Callback):
    def on_batch_begin(self, batch, logs=None):
        if batch == 3 and hvd.rank() == hvd.size() - 1:
            if how == "killed":
                print(f"kills itself at {time.monotonic():.3f}", flush=True)
                os.kill(os.getpid(), signal.SIGKILL)
            raise KeyError("a bad sample")


model = tf.keras.Sequential([tf.keras.layers.Dense(4), tf.keras.layers.Dense(1)])
model.compile(hvd.DistributedOptimizer(tf.keras.optimizers.SGD(0.01)), loss="mse")
x = np.ones((4000, 3), "float32")
try:
    model.fit(x, x[:, :1], batch_size=2, verbose=0, callbacks=[Culprit()])
except tf.errors.OpError as error:
    print(f"was told at {time.monotonic():.3f}", flush=True)
    print("was told:", str(error).replace("\n", " "), flush=True)
    raise
print("went on", flush=True)
