"""Images per second of a small convolutional network on invented data.

    farandole run -np 2 python 14_tensorflow_synthetic_benchmark.py
"""

from __future__ import annotations

import argparse
import time

import numpy as np
import tensorflow as tf

import farandole.tensorflow as fdl

parser = argparse.ArgumentParser(description="Synthetic benchmark")
parser.add_argument("--batch-size", type=int, default=32, help="per rank")
parser.add_argument("--image-size", type=int, default=64)
parser.add_argument("--num-warmup-batches", type=int, default=5)
parser.add_argument("--num-batches-per-iter", type=int, default=5)
parser.add_argument("--num-iters", type=int, default=5)
parser.add_argument("--fp16-allreduce", action="store_true")
args = parser.parse_args()

fdl.init()
side = args.image_size
model = tf.keras.Sequential(
    [
        tf.keras.layers.Conv2D(32, 3, strides=2, activation="relu"),
        tf.keras.layers.Conv2D(64, 3, strides=2, activation="relu"),
        tf.keras.layers.GlobalAveragePooling2D(),
        tf.keras.layers.Dense(1000),
    ]
)
model.build((None, side, side, 3))
optimizer = tf.keras.optimizers.SGD(0.01)
compression = fdl.Compression.fp16 if args.fp16_allreduce else fdl.Compression.none
loss_of = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
images = tf.random.uniform([args.batch_size, side, side, 3])
labels = tf.random.uniform([args.batch_size], maxval=1000, dtype=tf.int64)
fdl.broadcast_variables(model.variables, root_rank=0)


@tf.function
def batch() -> None:
    with tf.GradientTape() as tape:
        loss = loss_of(labels, model(images, training=True))
    tape = fdl.DistributedGradientTape(tape, compression=compression)
    grads = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(grads, model.trainable_variables))


def say(text: str) -> None:
    if fdl.rank() == 0:
        print(text, flush=True)


for _ in range(args.num_warmup_batches):
    batch()
speeds = []
for i in range(args.num_iters):
    start = time.perf_counter()
    for _ in range(args.num_batches_per_iter):
        batch()
    seconds = time.perf_counter() - start
    speeds.append(args.batch_size * args.num_batches_per_iter / seconds)
    say(f"Iter #{i}: {speeds[-1]:.1f} img/sec per rank")
mean, spread = np.mean(speeds), 1.96 * np.std(speeds)
say(f"Img/sec per rank: {mean:.1f} +-{spread:.1f}")
total = fdl.allreduce(tf.constant(mean), op=fdl.Sum, name="total")
say(f"Total img/sec on {fdl.size()} rank(s): {float(total):.1f}")
