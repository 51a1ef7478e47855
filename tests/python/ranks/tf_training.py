"""farandole.tensorflow: tapes, optimizers of tf.compat.v1, hooks, states; without Keras's fit."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

import cases
import farandole.tensorflow as hvd

hvd.init()
RANK, SIZE = hvd.rank(), hvd.size()
MEAN = (SIZE + 1) / 2  # of rank + 1
v1 = tf.compat.v1


def compiled():
    from farandole.tensorflow._backend import backend

    return backend().compiled


def case_tape():
    w = tf.Variable([1.0, 2.0])
    unused = tf.Variable(1.0)
    for tape in (tf.GradientTape(), hvd.DistributedGradientTape(tf.GradientTape())):
        with tape:
            loss = tf.reduce_sum(w) * float(RANK + 1)
        if type(tape) is tf.GradientTape:
            tape = hvd.DistributedGradientTape(tape)
        grads = tape.gradient(loss, {"w": w, "unused": unused})
        np.testing.assert_allclose(grads["w"], [MEAN] * 2)
        assert grads["unused"] is None
    with cases.raises(ValueError, "already"):
        hvd.DistributedGradientTape(hvd.DistributedGradientTape(tf.GradientTape()))


def case_tape_options_in_a_function():
    a, b, c = (tf.Variable([[1.0, 2.0]]) for _ in range(3))

    def gradients(**options):
        @tf.function
        def step():
            with tf.GradientTape() as tape:
                loss = tf.reduce_sum(a + 2.0 * b + 3.0 * c) * float(RANK + 1)
            tape = hvd.DistributedGradientTape(tape, **options)
            return tape.gradient(loss, [a, b, c])

        step()
        return [float(each[0, 0]) for each in step()]

    assert gradients() == [MEAN, 2 * MEAN, 3 * MEAN]
    for options in (
        {"num_groups": 2},
        {"groups": [[a, c]]},
        {"gradient_predivide_factor": 2.0},
        {"compression": hvd.Compression.fp16},
        {"compression": hvd.Compression.bf16},
    ):
        np.testing.assert_allclose(gradients(**options), [MEAN, 2 * MEAN, 3 * MEAN], rtol=1e-2)
    assert gradients(op=hvd.Sum) == [SIZE * MEAN, 2 * SIZE * MEAN, 3 * SIZE * MEAN]
    assert gradients(op=hvd.Adasum)[0] > 0


def case_buckets():
    sizes = [7, (4 << 20) // 4, 3, 5]  # the second one fills a bucket of its own
    variables = [tf.Variable(tf.ones([size])) for size in sizes]

    @tf.function(input_signature=[tf.TensorSpec([None])])
    def step(unknown):
        with tf.GradientTape() as tape:
            tape.watch(unknown)
            sums = [n * tf.reduce_sum(each) for n, each in enumerate([*variables, unknown], 1)]
            loss = tf.add_n(sums) * float(RANK + 1)
        tape = hvd.DistributedGradientTape(tape)
        return tape.gradient(loss, [*variables, unknown])

    for _ in range(3):
        grads = step(tf.ones([2]))
        for n, (grad, size) in enumerate(zip(grads, [*sizes, 2]), 1):
            np.testing.assert_allclose(grad, [n * MEAN] * size)
    if not compiled():
        return
    # From the last one on: (unknown), (5, 3), (4 MiB), (7).
    nodes = [
        each
        for each in step.get_concrete_function().graph.get_operations()
        if each.type.startswith("Farandole")
    ]
    together = sorted(len(each.inputs) for each in nodes if "Allreduce" in each.type)
    assert together == [1, 1, 1, 2], together
    # Only what contains the first variable is waited for by the thread that starts it.
    last = [each for each in nodes if each.get_attr("awaited_by") == 2]
    assert [each.inputs[0].shape[0] for each in last] == [7], last


def case_sparse_gradients():
    table = tf.Variable(tf.ones([SIZE + 1, 2]))
    for dense in (False, True):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.gather(table, [RANK, SIZE])) * SIZE
        tape = hvd.DistributedGradientTape(tape, sparse_as_dense=dense)
        grad = tape.gradient(loss, table)
        assert isinstance(grad, tf.IndexedSlices) != dense
        got = tf.convert_to_tensor(grad).numpy()
        assert got[:, 0].tolist() == [1.0] * SIZE + [float(SIZE)]


def case_partial_tape():
    near, far = tf.keras.layers.Dense(1, use_bias=False), tf.keras.layers.Dense(1, use_bias=False)
    x = tf.ones([1, 1])
    near(x), far(x)

    def gradients(**options):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(near(x) + far(x)) * float(RANK + 1)
        tape = hvd.PartialDistributedGradientTape(tape, local_layers=[near], **options)
        sources = near.trainable_variables + far.trainable_variables
        return [float(tf.squeeze(each)) for each in tape.gradient(loss, sources)]

    np.testing.assert_allclose(gradients(), [(RANK + 1) / SIZE, MEAN], rtol=1e-6)
    np.testing.assert_allclose(gradients(scale_local_gradients=False), [RANK + 1, MEAN], rtol=1e-6)


def case_session_with_hooks():
    """The shape of a program of TensorFlow 1."""
    with tf.Graph().as_default():
        w = v1.get_variable("w", initializer=tf.constant([float(RANK)] * 3))
        step = v1.train.get_or_create_global_step()
        loss = tf.reduce_sum(w) * float(RANK + 1)
        optimizer = hvd.DistributedOptimizer(v1.train.GradientDescentOptimizer(1.0))
        train = optimizer.minimize(loss, global_step=step)
        hooks = [hvd.BroadcastGlobalVariablesHook(0), v1.train.StopAtStepHook(last_step=4)]
        with v1.train.MonitoredTrainingSession(hooks=hooks) as session:
            while not session.should_stop():
                _, values = session.run([train, w])
        assert optimizer.get_slot_names() == []
    assert values.tolist() in ([-3 * MEAN] * 3, [-4 * MEAN] * 3), values


def case_session_with_placeholders():
    """What a step does not fetch is not run: neither by the hook nor by other operations."""
    with tf.Graph().as_default():
        never = v1.placeholder(tf.float32, [], name="never_fed")
        hvd.allreduce(never, name="before")
        x = v1.placeholder(tf.float32, [None], name="x")
        w = v1.get_variable("w", initializer=tf.constant(float(RANK)))
        step = v1.train.get_or_create_global_step()
        loss = tf.reduce_mean(w * x)
        optimizer = hvd.DistributedOptimizer(v1.train.GradientDescentOptimizer(1.0))
        train = optimizer.minimize(loss, global_step=step)
        mean = hvd.allreduce(tf.reduce_mean(x), name="mean")
        hooks = [hvd.BroadcastGlobalVariablesHook(0), v1.train.StopAtStepHook(last_step=3)]
        with v1.train.MonitoredTrainingSession(hooks=hooks) as session:
            assert session.run(w) == 0.0
            assert session.run(mean, {x: [RANK + 1.0]}) == MEAN
            while not session.should_stop():
                _, got = session.run([train, mean], {x: [RANK + 1.0] * 2})
                assert got == MEAN
                if not session.should_stop():
                    value = session.run(w)
    assert value == -2 * MEAN, value


def case_session_with_one_thread():
    """Operations that are ready at other times on other ranks do not wait for each other."""
    count = 20
    config = v1.ConfigProto(inter_op_parallelism_threads=1, use_per_session_threads=True)
    with tf.Graph().as_default(), v1.Session(config=config) as session:
        inputs: list[Any] = [None] * count
        after: list[Any] = []
        for i in range(count) if RANK == 0 else reversed(range(count)):
            with tf.control_dependencies(after):
                inputs[i] = tf.identity(float(i))
            after = [inputs[i].op]
        sums = [hvd.allreduce(inputs[i], op=hvd.Sum, name=f"sum_{i}") for i in range(count)]
        for _ in range(3):
            assert session.run(sums) == [float(i * SIZE) for i in range(count)]


def case_session_several_passes():
    with tf.Graph().as_default():
        w = v1.get_variable("w", initializer=tf.constant(0.0))
        optimizer = hvd.DistributedOptimizer(
            v1.train.MomentumOptimizer(1.0, 0.0), backward_passes_per_step=2
        )
        train = optimizer.minimize(w * float(RANK + 1))
        with v1.Session() as session:
            session.run(v1.global_variables_initializer())
            session.run(hvd.broadcast_global_variables(0))
            seen = []
            for _ in range(4):
                session.run(train)
                seen.append(float(session.run(w)))
            assert session.run(optimizer._agg_helper.counter) == 4
    assert seen == [0.0, -2 * MEAN, -2 * MEAN, -4 * MEAN], seen


def case_session_adasum():
    """Every rank's own step, clipped and scaled by its own optimizer, is what is combined."""
    for passes in (1, 2):
        with tf.Graph().as_default():
            w = v1.get_variable("w", initializer=tf.zeros([SIZE]), use_resource=passes > 1)
            optimizer = hvd.DistributedOptimizer(
                v1.train.AdagradOptimizer(1.0, initial_accumulator_value=1e-12),
                op=hvd.Adasum,
                backward_passes_per_step=passes,
            )
            train = optimizer.minimize(w[RANK] * float(RANK + 1))
            with v1.Session() as session:
                session.run(v1.global_variables_initializer())
                for _ in range(passes):
                    session.run(train)
                # Steps at right angles add up; gradients would have been scaled together.
                np.testing.assert_allclose(session.run(w), [-1.0] * SIZE, rtol=1e-4)


def case_estimator():
    estimator: Any = getattr(tf, "estimator", None)
    if not hasattr(estimator, "Estimator"):
        return
    import tempfile

    def model(features, labels, mode):
        with v1.variable_scope("model"):
            w = v1.get_variable("w", shape=[], initializer=v1.zeros_initializer())
        loss = tf.reduce_mean(tf.square(w - labels))
        optimizer = hvd.DistributedOptimizer(v1.train.GradientDescentOptimizer(0.1))
        train = optimizer.minimize(loss, global_step=v1.train.get_global_step())
        return estimator.EstimatorSpec(mode, loss=loss, train_op=train)

    def data():
        return tf.data.Dataset.from_tensors(({"x": [0.0]}, [float(RANK)])).repeat()

    with tempfile.TemporaryDirectory() as folder:
        made = estimator.Estimator(model, model_dir=folder)
        made.train(data, steps=40, hooks=[hvd.BroadcastGlobalVariablesHook(0)])
        np.testing.assert_allclose(made.get_variable_value("model/w"), (SIZE - 1) / 2, atol=1e-3)


def case_state():
    w = tf.Variable([float(RANK)])
    state = hvd.elastic.TensorFlowState([w], batch=RANK)

    @hvd.elastic.run
    def train(state):
        assert w.numpy().tolist() == [0.0] and state.batch == 0
        w.assign([5.0])
        state.batch = 7
        state.commit()
        w.assign([9.0])
        state.restore()
        assert w.numpy().tolist() == [5.0] and state.batch == 7
        return "done"

    assert train(state) == "done"
    if SIZE == 1:
        return

    @hvd.elastic.run
    def fails(state):
        hvd.allreduce(tf.ones([RANK + 1]), name="of.different.shapes")

    with cases.raises(hvd.HorovodInternalError, "of.different.shapes"):
        fails(state)
    with tf.Graph().as_default(), v1.Session() as session:
        w = v1.get_variable("w", initializer=tf.constant(float(RANK)))
        session.run(v1.global_variables_initializer())
        state = hvd.elastic.TensorFlowState(session=session)
        state.sync()
        assert session.run(w) == 0.0
        session.run(w.assign(3.0))
        state.restore()
        assert session.run(w) == 0.0


def case_overlap():
    """A reduction that waits for other ranks does not hold up the rest of the graph."""
    if not hvd.mpi_ops.backend().compiled:
        return

    @tf.function
    def step(x):
        if RANK == 0:
            early = hvd.allreduce(x, op=hvd.Sum, name="early")
            late = hvd.allreduce(x, op=hvd.Sum, name="late")
        else:
            late = hvd.allreduce(x, op=hvd.Sum, name="late")
            early = hvd.allreduce(x + 0.0 * late, op=hvd.Sum, name="early")
        return early + late

    assert float(step(tf.constant(1.0))) == 2 * SIZE


cases.run(globals())
