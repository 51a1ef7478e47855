"""farandole.tensorflow.keras: optimizers, callbacks, saved models, states, for every Keras."""

from __future__ import annotations

import os
import sys
import tempfile
from typing import Any

import numpy as np
import tensorflow as tf

import cases
import farandole.tensorflow.keras as hvd
from farandole.tensorflow import SyncBatchNormalization

hvd.init()
RANK, SIZE = hvd.rank(), hvd.size()
MEAN = (SIZE + 1) / 2  # of rank + 1
keras = tf.keras
KERAS_3 = hasattr(keras.optimizers.Optimizer, "apply")
if os.environ.get("TF_USE_LEGACY_KERAS") == "1":
    assert not KERAS_3


def optimizers():
    """Of all generations that this TensorFlow has."""
    yield keras.optimizers
    if hasattr(getattr(keras.optimizers, "legacy", None), "Adagrad"):
        try:
            keras.optimizers.legacy.SGD(1.0)
        except Exception:  # Keras 3 keeps the name only
            return
        yield keras.optimizers.legacy


def updates(optimizer, times=1, function=True):
    """What is left of 0 after updates with the gradient rank + 1."""
    w = tf.Variable(0.0)

    def step():
        optimizer.apply_gradients([(tf.constant(float(RANK + 1)), w)])

    if function:
        step = tf.function(step)
    seen = []
    for _ in range(times):
        step()
        seen.append(float(w))
    return seen


def case_updates():
    for module in optimizers():
        for function in (False, True):
            plain = module.SGD(1.0)
            made = hvd.DistributedOptimizer(plain)
            assert isinstance(made, type(plain)) and type(made).__name__ == type(plain).__name__
            assert updates(made, 2, function) == [-MEAN, -2 * MEAN]
        assert updates(hvd.DistributedOptimizer(module.SGD(1.0), op=hvd.Sum)) == [-MEAN * SIZE]
        with cases.raises(ValueError, "already"):
            hvd.DistributedOptimizer(hvd.DistributedOptimizer(module.SGD(1.0)))
        made = hvd.DistributedOptimizer(module.SGD(1.0, clipnorm=0.5))
        np.testing.assert_allclose(updates(made), [-0.5])
        for name in ("Adam", "RMSprop", "Adagrad", "Adamax"):
            made = hvd.DistributedOptimizer(getattr(module, name)(0.1))
            got = updates(made, 3)
            assert hvd.allgather_object(got) == [got] * SIZE, got
            assert got[2] < got[0] < 0, (module.__name__, name, got)
    with cases.raises(ValueError, "an optimizer"):
        hvd.DistributedOptimizer("sgd")


def case_several_passes():
    for module in optimizers():
        for average, step in ((False, 2 * MEAN), (True, MEAN)):
            made = hvd.DistributedOptimizer(
                module.SGD(1.0), backward_passes_per_step=2, average_aggregated_gradients=average
            )
            assert updates(made, 4) == [0.0, -step, -step, -2 * step]
            # Keras 3 counts updates, Keras 2 every pass.
            assert int(made.iterations) == (2 if KERAS_3 else 4)
    if KERAS_3:
        made = hvd.DistributedOptimizer(keras.optimizers.SGD(1.0, gradient_accumulation_steps=2))
        assert updates(made, 2) == [0.0, -MEAN]


def case_adasum():
    """Every rank's own step, clipped by its own optimizer, is what is combined."""
    gradient = tf.one_hot(RANK, SIZE) * float(RANK + 3)
    for module in optimizers():
        made = hvd.DistributedOptimizer(module.SGD(1.0, clipnorm=0.5), op=hvd.Adasum)
        w = tf.Variable(tf.zeros([SIZE]))
        step = tf.function(lambda: made.apply_gradients([(gradient, w)]))
        for times in (1, 2):
            step()
            np.testing.assert_allclose(w.numpy(), [-0.5 * times] * SIZE, rtol=1e-4)
        made = hvd.DistributedOptimizer(module.SGD(1.0), op=hvd.Adasum, backward_passes_per_step=2)
        w.assign(tf.zeros([SIZE]))
        for _ in range(2):
            made.apply_gradients([(gradient, w)])
        np.testing.assert_allclose(w.numpy(), [-2.0 * (r + 3) for r in range(SIZE)], rtol=1e-4)
    if KERAS_3:
        inside = hvd.DistributedOptimizer(keras.optimizers.SGD(1.0), op=hvd.Adasum)
        with cases.raises(ValueError, "loss scaling"):
            keras.optimizers.LossScaleOptimizer(inside).apply(
                [gradient], [keras.Variable(gradient)]
            )


def case_local_variables():
    layer = keras.layers.Dense(1, use_bias=False)
    layer(tf.ones([1, 1]))
    made = hvd.PartialDistributedOptimizer(keras.optimizers.SGD(1.0), local_layers=[layer])
    (kernel,) = layer.trainable_variables
    kernel.assign([[0.0]])
    made.apply_gradients([(tf.constant([[float(RANK + 1)]]), kernel)])
    np.testing.assert_allclose(np.asarray(kernel), [[-(RANK + 1) / SIZE]], rtol=1e-6)


def case_loss_scale():
    if not KERAS_3:
        return
    scale = keras.optimizers.LossScaleOptimizer
    for made in (
        hvd.DistributedOptimizer(scale(keras.optimizers.SGD(1.0), initial_scale=4.0)),
        scale(hvd.DistributedOptimizer(keras.optimizers.SGD(1.0)), initial_scale=4.0),
    ):
        w = keras.Variable(0.0)
        apply = tf.function(lambda g: made.apply([g], [w]))
        apply(tf.constant(4.0 * (RANK + 1)))
        assert float(w) == -MEAN
        # One rank overflows: nobody updates.
        apply(tf.constant(np.inf if RANK == 0 else 1.0))
        assert float(w) == -MEAN
    keras.config.set_dtype_policy("mixed_float16")  # puts loss scaling around by itself
    try:
        made = model(hvd.DistributedOptimizer(keras.optimizers.SGD(0.1)))
        broadcast = hvd.callbacks.BroadcastGlobalVariablesCallback(0)
        made.fit(*data(), batch_size=32, verbose=0, callbacks=[broadcast])
        same_everywhere(made)
    finally:
        keras.config.set_dtype_policy("float32")


def data(n=64):
    generator = np.random.RandomState(RANK)
    x = generator.rand(n, 4).astype("float32")
    return x, (x.sum(1) > 2).astype("int32")


def model(optimizer, **options):
    keras.utils.set_random_seed(RANK)  # every rank starts elsewhere
    made = keras.Sequential(
        [keras.layers.Dense(8, activation="relu"), keras.layers.Dropout(0.1), keras.layers.Dense(2)]
    )
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    made.compile(optimizer, loss=loss, metrics=["accuracy"], **options)
    return made


def same_everywhere(made):
    flat = np.concatenate([np.asarray(each).ravel() for each in made.weights])
    every = hvd.allgather_object(flat)
    for other in every:
        np.testing.assert_array_equal(flat, other)


def case_fit():
    """Callbacks, metrics, warm-up, a checkpoint of rank 0, and back from it."""
    rates = []

    base: Any = keras.callbacks.Callback

    class Watch(base):
        def on_batch_end(self, batch, logs=None):
            rates.append(float(np.asarray(self.model.optimizer.learning_rate)))

    rate = 0.1 * SIZE
    made = model(hvd.DistributedOptimizer(keras.optimizers.Adam(rate)))
    folder: Any = tempfile.mkdtemp() if RANK == 0 else None
    callbacks = [
        hvd.callbacks.BroadcastGlobalVariablesCallback(0),
        hvd.callbacks.MetricAverageCallback(),
        hvd.callbacks.LearningRateWarmupCallback(rate, warmup_epochs=1, verbose=1),
        hvd.callbacks.LearningRateScheduleCallback(rate, 0.1, start_epoch=2),
        Watch(),
    ]
    file: Any = os.path.join(folder, "best.keras") if folder else None
    if RANK == 0:
        callbacks.append(hvd.callbacks.BestModelCheckpoint(monitor="loss", filepath=file))
    history = made.fit(*data(), batch_size=16, epochs=3, verbose=0, callbacks=callbacks)
    same_everywhere(made)
    losses = history.history["loss"]
    assert hvd.allgather_object(losses) == [losses] * SIZE
    np.testing.assert_allclose(rates[3], rate, rtol=1e-5)
    assert rates[0] <= rate * 1.00001, rates
    np.testing.assert_allclose(rates[-1], rate * 0.1, rtol=1e-5)
    np.testing.assert_allclose(history.history["lr"][-1], rate * 0.1, rtol=1e-5)
    if RANK == 0:
        assert os.path.exists(file)
        keras.models.load_model(file)  # nothing of Farandole is in the file
    file = hvd.broadcast_object(file)
    again = hvd.load_model(file)
    steps = int(again.optimizer.iterations)
    assert type(again.optimizer).__name__ == "Adam" and steps > 0
    again.fit(*data(), batch_size=16, epochs=1, verbose=0)
    same_everywhere(again)
    assert int(again.optimizer.iterations) == steps + 4
    hvd.allreduce(0.0)
    if RANK == 0:
        os.unlink(file)
        os.rmdir(folder)


def case_xla():
    """Asked for or not: steps with a distributed optimizer are not compiled by XLA."""
    made = model(hvd.DistributedOptimizer(keras.optimizers.SGD(0.1)), jit_compile=True)
    if KERAS_3:
        assert made.jit_compile is False
        made.fit(*data(), batch_size=32, verbose=0)
    else:
        with cases.raises(Exception, "jit_compile=False"):
            made.fit(*data(), batch_size=32, verbose=0)


def case_sync_batch_norm():
    everything = np.arange(4 * SIZE * 3, dtype="float32").reshape(SIZE, 4, 3) ** 1.5
    weights = np.random.RandomState(1).rand(4 * SIZE, 3).astype("float32")
    plain, synced = keras.layers.BatchNormalization(), SyncBatchNormalization()
    whole = tf.constant(everything.reshape(-1, 3))
    mine = tf.constant(everything[RANK])
    with tf.GradientTape() as tape:
        tape.watch(whole)
        expected = plain(whole, training=True)
        loss = tf.reduce_sum(expected * weights)
    expected_grad = tape.gradient(loss, whole)
    with tf.GradientTape() as tape:
        tape.watch(mine)
        got = synced(mine, training=True)
        loss = tf.reduce_sum(got * weights[4 * RANK : 4 * RANK + 4])
    grad = tape.gradient(loss, mine)
    part = slice(4 * RANK, 4 * RANK + 4)
    np.testing.assert_allclose(got, expected[part], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(grad, expected_grad[part], rtol=1e-3, atol=1e-5)
    np.testing.assert_allclose(
        np.asarray(synced.moving_variance), np.asarray(plain.moving_variance), rtol=1e-4
    )
    synced(mine[: RANK + 1], training=False)  # everyone on his own
    with cases.raises(ValueError, "fused"):
        SyncBatchNormalization(fused=True)


def case_values():
    assert float(hvd.allreduce(float(RANK), op=hvd.Sum)) == sum(range(SIZE))
    assert hvd.allgather(np.asarray([RANK])).tolist() == list(range(SIZE))
    assert int(hvd.broadcast(RANK, SIZE - 1)) == SIZE - 1
    assert hvd.reducescatter(np.ones(SIZE), op=hvd.Sum).tolist() == [SIZE]


def case_state():
    made = model(hvd.DistributedOptimizer(keras.optimizers.SGD(0.1, momentum=0.9)))
    made.fit(*data(), batch_size=32, verbose=0)
    state = hvd.elastic.KerasState(made, batch=RANK, epoch=0)

    @hvd.elastic.run
    def train(state):
        same_everywhere(made)
        made.fit(
            *data(),
            batch_size=16,
            epochs=2,
            verbose=0,
            callbacks=[
                hvd.elastic.CommitStateCallback(state, 2),
                hvd.elastic.UpdateBatchStateCallback(state),
                hvd.elastic.UpdateEpochStateCallback(state),
            ],
        )

    train(state)
    assert state.epoch == 2 and state.batch == 0
    same_everywhere(made)
    kept = [np.asarray(each).copy() for each in made.weights]
    state.save()
    for each in made.weights:
        each.assign(np.asarray(each) + 1.0)
    state.restore()
    for each, value in zip(made.weights, kept):
        np.testing.assert_array_equal(np.asarray(each), value)


def case_package_keras():
    """farandole.keras, for the package keras: Keras 3 even where tf.keras is another."""
    import keras as package

    import farandole.keras as fdl

    if package.__version__.startswith("3") and package.backend.backend() != "tensorflow":
        return
    made = package.Sequential([package.layers.Dense(1)])
    made.compile(fdl.DistributedOptimizer(package.optimizers.SGD(0.01)), loss="mse")
    x = np.full((8, 2), RANK + 1.0, "float32")
    history = made.fit(
        x,
        x[:, :1],
        batch_size=4,
        verbose=0,
        callbacks=[
            fdl.callbacks.BroadcastGlobalVariablesCallback(0),
            fdl.callbacks.MetricAverageCallback(),
        ],
    )
    same_everywhere(made)
    losses = history.history["loss"]
    assert hvd.allgather_object(losses) == [losses] * SIZE


def case_horovod_names():
    import horovod.keras
    import horovod.tensorflow
    import horovod.tensorflow.keras as their
    from horovod.tensorflow.keras import callbacks

    assert horovod.tensorflow.size() == SIZE and their.rank() == RANK
    assert callbacks.MetricAverageCallback is hvd.callbacks.MetricAverageCallback
    assert horovod.tensorflow.keras is their and horovod.tensorflow.SyncBatchNormalization
    for name in (
        "allreduce",
        "allgather",
        "broadcast",
        "alltoall",
        "reducescatter",
        "join",
        "size_op",
        "DistributedOptimizer",
        "DistributedGradientTape",
        "PartialDistributedGradientTape",
        "BroadcastGlobalVariablesHook",
        "Compression",
        "elastic",
        "broadcast_variables",
        "grouped_allreduce",
        "HorovodInternalError",
        "_executing_eagerly",
        "mpi_ops",
        "Adasum",
        "init",
        "local_rank",
        "ProcessSet",
        "mpi_built",
        "broadcast_object_fn",
    ):
        assert hasattr(horovod.tensorflow, name), name
    for module in (their, horovod.keras):
        for name in (
            "DistributedOptimizer",
            "PartialDistributedOptimizer",
            "broadcast_global_variables",
            "allreduce",
            "load_model",
            "callbacks",
            "elastic",
            "Compression",
            "Average",
        ):
            assert hasattr(module, name), name


print("Keras", keras.__version__ if hasattr(keras, "__version__") else "?", file=sys.stderr)
cases.run(globals())
