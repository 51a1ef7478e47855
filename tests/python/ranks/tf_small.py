"""One reduction in tf.function; tells by which operations."""

from __future__ import annotations

import tensorflow as tf

import farandole.tensorflow as hvd
from farandole.tensorflow._backend import backend

hvd.init()
total = tf.function(lambda x: hvd.allreduce(x, op=hvd.Sum))(tf.ones([2]))
assert total.numpy().tolist() == [hvd.size()] * 2
print("compiled" if backend().compiled else "plain", "works", flush=True)
