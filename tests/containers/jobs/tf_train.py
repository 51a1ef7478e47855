"""Trains a dense network under tf.function; compares with the same on this rank alone, and tells which operations were used."""

from __future__ import annotations

import numpy
import tensorflow as tf

import farandole.tensorflow as fdl
from farandole.tensorflow import _backend

EXAMPLES = 12


def layers(seed: int) -> list[tf.Variable]:
    random = numpy.random.default_rng(seed)
    sizes = (24, 16, 8, 1)
    made = []
    for inputs, outputs in zip(sizes, sizes[1:]):
        made.append(tf.Variable(random.normal(0, 0.3, (inputs, outputs)).astype("float32")))
        made.append(tf.Variable(tf.zeros([outputs])))
    return made


def loss_of(variables: list[tf.Variable], x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
    for weights, bias in zip(variables[::2], variables[1::2]):
        x = tf.tanh(x @ weights + bias)
    return tf.reduce_mean((x - y) ** 2)


def main() -> None:
    fdl.init()
    rank, size = fdl.rank(), fdl.size()
    mine, alone = layers(100 + rank), layers(100)
    fdl.broadcast_variables(mine, root_rank=0)

    @tf.function
    def step(x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape() as tape:
            loss = loss_of(mine, x[rank::size], y[rank::size])
        tape = fdl.DistributedGradientTape(tape)
        for variable, gradient in zip(mine, tape.gradient(loss, mine)):
            variable.assign_sub(0.2 * gradient)
        return fdl.allreduce(loss, name="loss")

    @tf.function
    def step_alone(x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape() as tape:
            loss = loss_of(alone, x, y)
        for variable, gradient in zip(alone, tape.gradient(loss, alone)):
            variable.assign_sub(0.2 * gradient)
        return loss

    random = numpy.random.default_rng(7)
    losses = []
    for _ in range(30):
        x = random.normal(size=(EXAMPLES, 24)).astype("float32")
        y = numpy.tanh(x[:, :1] - x[:, 1:2])
        got, wanted = float(step(tf.constant(x), tf.constant(y))), float(step_alone(x, y))
        assert abs(got - wanted) < 1e-4, (got, wanted)
        losses.append(wanted)
    distance = max(float(tf.reduce_max(abs(a - b))) for a, b in zip(mine, alone))
    assert distance < 1e-4, distance
    assert sum(losses[-5:]) < sum(losses[:5]), losses
    ours = _backend.backend()
    loaded = [line.split()[-1] for line in open("/proc/self/maps") if "/tensorflow-" in line]
    print(f"rank {rank} of {size} trained with {'compiled' if ours.compiled else 'plain'} operations",
          *sorted(set(loaded)), flush=True)


main()
