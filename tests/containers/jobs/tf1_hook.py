"""A script of TensorFlow 1: placeholders, BroadcastGlobalVariablesHook, MonitoredTrainingSession."""

from __future__ import annotations

import numpy
import tensorflow.compat.v1 as tf

import horovod.tensorflow as hvd

tf.disable_v2_behavior()
EXAMPLES = 12
STEPS = 40


def main() -> None:
    hvd.init()
    rank, size = hvd.rank(), hvd.size()
    x = tf.placeholder(tf.float32, [None, 3], name="x")
    y = tf.placeholder(tf.float32, [None, 1], name="y")
    # Every rank begins elsewhere: only the hook makes them equal.
    weights = tf.get_variable("weights", initializer=tf.fill([3, 1], float(rank + 1)))
    bias = tf.get_variable("bias", initializer=tf.fill([1], float(10 * rank)))
    loss = tf.reduce_mean(tf.square(x @ weights + bias - y))
    step = tf.train.get_or_create_global_step()
    optimizer = hvd.DistributedOptimizer(tf.train.GradientDescentOptimizer(0.1))
    train = optimizer.minimize(loss, global_step=step)
    average = hvd.allreduce(loss, name="loss")

    # The same by hand, on all examples.
    expected = numpy.ones((3, 1)), numpy.zeros(1)
    random = numpy.random.default_rng(7)
    hooks = [hvd.BroadcastGlobalVariablesHook(0), tf.train.StopAtStepHook(last_step=STEPS)]
    with tf.train.MonitoredTrainingSession(hooks=hooks) as session:
        start = session.run([weights, bias])
        assert (start[0] == 1).all() and (start[1] == 0).all(), start
        while not session.should_stop():
            inputs = random.normal(size=(EXAMPLES, 3))
            wanted = inputs @ [[1.0], [-2.0], [0.5]] + 3.0
            feed = {x: inputs[rank::size], y: wanted[rank::size]}
            error = inputs @ expected[0] + expected[1] - wanted
            total = session.run(average, feed)
            assert abs(total - float((error**2).mean())) < 1e-3, total
            session.run(train, feed)
            expected = (
                expected[0] - 0.2 * inputs.T @ error / EXAMPLES,
                expected[1] - 0.2 * error.mean(axis=0),
            )
            if not session.should_stop():
                values = session.run([weights, bias])
                assert numpy.allclose(values[0], expected[0], atol=1e-3), (values, expected)
                assert numpy.allclose(values[1], expected[1], atol=1e-3), (values, expected)
    assert abs(expected[1][0] - 3.0) < 0.3, expected
    print(f"rank {rank} of {size} trained in a session", flush=True)


main()
