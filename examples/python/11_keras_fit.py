"""Fashion-MNIST with Keras's fit(), as people write it for Horovod.

Rank 0 writes a checkpoint per epoch; the learning rate warms up; metrics are those of all ranks.

    farandole run -np 2 python 11_keras_fit.py --epochs 3
"""

import argparse
import os

import tensorflow as tf
from fashion_mnist_arrays import load

import horovod.tensorflow.keras as hvd

parser = argparse.ArgumentParser(description="Fashion-MNIST with Keras")
parser.add_argument("--epochs", type=int, default=3)
parser.add_argument("--batch-size", type=int, default=64, help="per rank")
parser.add_argument("--samples", type=int, default=60000)
parser.add_argument("--warmup-epochs", type=int, default=1)
parser.add_argument("--checkpoints", default="./checkpoints", help="a folder for rank 0")
args = parser.parse_args()

hvd.init()
images, labels = load(train=True, samples=args.samples)
dataset = (
    tf.data.Dataset.from_tensor_slices((images, labels))
    .shard(hvd.size(), hvd.rank())  # every rank has its own part of the data
    .shuffle(10000, seed=hvd.rank())
    .repeat()
    .batch(args.batch_size)
)

model = tf.keras.Sequential(
    [
        tf.keras.layers.Conv2D(16, [3, 3], activation="relu"),
        tf.keras.layers.MaxPooling2D(),
        tf.keras.layers.Conv2D(32, [3, 3], activation="relu"),
        tf.keras.layers.MaxPooling2D(),
        tf.keras.layers.Dropout(0.25),
        tf.keras.layers.Flatten(),
        tf.keras.layers.Dense(128, activation="relu"),
        tf.keras.layers.Dense(10, activation="softmax"),
    ]
)

scaled_lr = 0.001 * hvd.size()
optimizer = hvd.DistributedOptimizer(tf.keras.optimizers.Adam(scaled_lr))
model.compile(
    loss=tf.keras.losses.SparseCategoricalCrossentropy(),
    optimizer=optimizer,
    metrics=["accuracy"],
)

callbacks = [
    hvd.callbacks.BroadcastGlobalVariablesCallback(0),
    hvd.callbacks.MetricAverageCallback(),
    hvd.callbacks.LearningRateWarmupCallback(
        initial_lr=scaled_lr, warmup_epochs=args.warmup_epochs, verbose=1
    ),
]
if hvd.rank() == 0:
    os.makedirs(args.checkpoints, exist_ok=True)
    callbacks.append(
        tf.keras.callbacks.ModelCheckpoint(
            os.path.join(args.checkpoints, "checkpoint-{epoch}.keras")
        )
    )

model.fit(
    dataset,
    steps_per_epoch=max(1, args.samples // args.batch_size // hvd.size()),
    callbacks=callbacks,
    epochs=args.epochs,
    verbose=2 if hvd.rank() == 0 else 0,
)

test_images, test_labels = load(train=False, samples=2000)
loss, accuracy = model.evaluate(test_images, test_labels, verbose=0)
if hvd.rank() == 0:
    print(f"Test loss: {loss:.4f}, test accuracy: {accuracy:.4f}", flush=True)
