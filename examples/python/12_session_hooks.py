"""Fashion-MNIST in a graph of TensorFlow 1 with a session and hooks, as written for Horovod.

    farandole run -np 2 python 12_session_hooks.py --steps 200
"""

import argparse
import logging
import sys
import time

import numpy as np
import tensorflow.compat.v1 as tf
from fashion_mnist_arrays import load

import horovod.tensorflow as hvd

tf.disable_v2_behavior()
tf.logging.set_verbosity(tf.logging.INFO)
logging.getLogger("tensorflow").handlers = [logging.StreamHandler(sys.stdout)]

parser = argparse.ArgumentParser(description="Fashion-MNIST with sessions")
parser.add_argument("--steps", type=int, default=400, help="of all ranks together")
parser.add_argument("--batch-size", type=int, default=100, help="per rank")
parser.add_argument("--samples", type=int, default=60000)
parser.add_argument("--checkpoints", default="./checkpoints", help="a folder for rank 0")


def network(images):
    def weights(name, shape):
        scale = 1.0 / np.sqrt(np.prod(shape[:-1]))
        return tf.get_variable(name, shape, initializer=tf.random_normal_initializer(0, scale))

    x = tf.nn.relu(tf.nn.conv2d(images, weights("conv1", [5, 5, 1, 16]), 1, "SAME"))
    x = tf.nn.max_pool2d(x, 2, 2, "SAME")
    x = tf.nn.relu(tf.nn.conv2d(x, weights("conv2", [5, 5, 16, 32]), 1, "SAME"))
    x = tf.nn.max_pool2d(x, 2, 2, "SAME")
    x = tf.reshape(x, [-1, 7 * 7 * 32])
    x = tf.nn.relu(tf.matmul(x, weights("dense1", [7 * 7 * 32, 128])))
    return tf.matmul(x, weights("dense2", [128, 10]))


def batches(images, labels, size):
    """Without end, from this rank's part of the data, in an order of its own."""
    images, labels = images[hvd.rank() :: hvd.size()], labels[hvd.rank() :: hvd.size()]
    random = np.random.RandomState(hvd.rank())
    while True:
        order = random.permutation(len(images))
        for start in range(0, len(order) - size + 1, size):
            part = order[start : start + size]
            yield images[part], labels[part]


def main():
    args = parser.parse_args()
    hvd.init()
    data = batches(*load(train=True, samples=args.samples), args.batch_size)

    image = tf.placeholder(tf.float32, [None, 28, 28, 1], name="image")
    label = tf.placeholder(tf.int64, [None], name="label")
    logits = network(image)
    loss = tf.losses.sparse_softmax_cross_entropy(label, logits)
    accuracy = tf.reduce_mean(tf.cast(tf.equal(tf.argmax(logits, 1), label), tf.float32))

    optimizer = hvd.DistributedOptimizer(tf.train.AdamOptimizer(0.001 * hvd.size()))
    global_step = tf.train.get_or_create_global_step()
    train = optimizer.minimize(loss, global_step=global_step)

    hooks = [
        hvd.BroadcastGlobalVariablesHook(0),
        tf.train.StopAtStepHook(last_step=args.steps // hvd.size()),
        tf.train.LoggingTensorHook({"step": global_step, "loss": loss}, every_n_iter=10),
    ]
    start = time.time()
    with tf.train.MonitoredTrainingSession(
        checkpoint_dir=args.checkpoints if hvd.rank() == 0 else None,
        hooks=hooks,
        log_step_count_steps=20,
        save_summaries_steps=None,
    ) as session:
        while not session.should_stop():
            images, labels = next(data)
            session.run(train, {image: images, label: labels})
    seconds = time.time() - start
    if hvd.rank() == 0:
        tests, answers = load(train=False, samples=1000)
        with tf.Session() as session:
            tf.train.Saver().restore(session, tf.train.latest_checkpoint(args.checkpoints))
            found = session.run(accuracy, {image: tests, label: answers})
        print(f"Test accuracy: {found:.4f}")
        print("============================")
        print("Number of tasks: ", hvd.size())
        print(f"Total time is: {seconds:.4f}", flush=True)


if __name__ == "__main__":
    main()
