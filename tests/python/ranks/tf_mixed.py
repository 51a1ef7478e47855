"""Rank WITHOUT has neither a compiler nor a cache, rank MUST wants compiled operations only."""

from __future__ import annotations

import os

RANK = os.environ["RANK"]
if os.environ.get("WITHOUT") == RANK:
    os.environ["CXX"] = "no-such-compiler"
    os.environ["FARANDOLE_CACHE"] = os.environ["TMPDIR"] = os.environ["EMPTY"]
if os.environ.get("MUST") == RANK:
    os.environ["FARANDOLE_TENSORFLOW_OPS"] = "compiled"

import tensorflow as tf  # noqa: E402

import farandole.tensorflow as hvd  # noqa: E402
from farandole.tensorflow._backend import backend  # noqa: E402

hvd.init()
rank, size = hvd.rank(), hvd.size()
alone = hvd.add_process_set([0])
if rank == 0:
    hvd.rank_op()  # nothing that others take part in
inner = tf.function(lambda x: hvd.allreduce(x, op=hvd.Sum, name="inner"))
outer = tf.function(lambda x: inner(x) + inner(2.0 * x))
assert outer(tf.ones([2])).numpy().tolist() == [3.0 * size] * 2
if rank == 0:
    # A set that others are not in does not wait for them.
    assert hvd.allreduce(tf.ones([1]), op=hvd.Sum, process_set=alone).numpy().tolist() == [1.0]
w = tf.Variable([1.0, 2.0])


@tf.function
def step():
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(w * w) * float(rank + 1)
    return hvd.DistributedGradientTape(tape).gradient(loss, [w])[0]


assert step().numpy().tolist() == [3.0, 6.0]
print("compiled" if backend().compiled else "plain", "works", flush=True)
