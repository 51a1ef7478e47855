"""Fashion-MNIST with a loop and a GradientTape in tf.function.

    farandole run -np 2 python 13_gradient_tape.py --steps 300
"""

from __future__ import annotations

import argparse

import tensorflow as tf
from fashion_mnist_arrays import load

import farandole.tensorflow as fdl

parser = argparse.ArgumentParser(description="Fashion-MNIST with a GradientTape")
parser.add_argument("--steps", type=int, default=300)
parser.add_argument("--batch-size", type=int, default=64, help="per rank")
parser.add_argument("--samples", type=int, default=60000)
args = parser.parse_args()

fdl.init()
dataset = (
    tf.data.Dataset.from_tensor_slices(load(train=True, samples=args.samples))
    .shard(fdl.size(), fdl.rank())
    .shuffle(10000, seed=fdl.rank())
    .repeat()
    .batch(args.batch_size)
)
model = tf.keras.Sequential(
    [
        tf.keras.layers.Conv2D(16, 3, activation="relu"),
        tf.keras.layers.MaxPooling2D(),
        tf.keras.layers.Flatten(),
        tf.keras.layers.Dense(64, activation="relu"),
        tf.keras.layers.Dense(10),
    ]
)
loss_of = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
optimizer = tf.keras.optimizers.SGD(0.02 * fdl.size(), momentum=0.9)
model.build((None, 28, 28, 1))
fdl.broadcast_variables(model.variables, root_rank=0)


@tf.function
def step(images: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
    with tf.GradientTape() as tape:
        loss = loss_of(labels, model(images, training=True))
    tape = fdl.DistributedGradientTape(tape)
    grads = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(grads, model.trainable_variables))
    return loss


for number, (images, labels) in enumerate(dataset.take(args.steps), 1):
    loss = step(images, labels)
    if number % 50 == 0:
        average = fdl.allreduce(loss, name="loss")
        if fdl.rank() == 0:
            print(f"step {number}: loss {float(average):.4f}", flush=True)

# Every rank takes its share of the test data.
images, labels = load(train=False, samples=2000)
images, labels = images[fdl.rank() :: fdl.size()], labels[fdl.rank() :: fdl.size()]
correct = tf.reduce_sum(tf.cast(tf.argmax(model(images), 1) == labels, tf.int64))
correct = fdl.allreduce(correct, op=fdl.Sum, name="correct")
if fdl.rank() == 0:
    print(f"accuracy {int(correct) / 2000:.4f}", flush=True)
