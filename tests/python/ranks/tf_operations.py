"""farandole.tensorflow: collective operations, eager, in tf.function and in sessions."""

from __future__ import annotations

import os
import signal
import threading
from typing import Any

import numpy as np
import tensorflow as tf

import cases
import farandole.tensorflow as hvd

hvd.init()
RANK, SIZE = hvd.rank(), hvd.size()
tf.config.threading.set_intra_op_parallelism_threads(1)
TOTAL = sum(range(SIZE))
DTYPES = [
    tf.uint8,
    tf.int8,
    tf.uint16,
    tf.int16,
    tf.int32,
    tf.int64,
    tf.float16,
    tf.bfloat16,
    tf.float32,
    tf.float64,
    tf.complex64,
    tf.complex128,
]


def in_all_modes(function, *arrays):
    """What function(*tensors) gives eagerly, in tf.function, and in a session; as arrays."""
    yield tf.nest.map_structure(np.asarray, function(*[tf.constant(a) for a in arrays]))
    compiled = tf.function(lambda *a: function(*a))
    for _ in range(2):
        yield tf.nest.map_structure(np.asarray, compiled(*[tf.constant(a) for a in arrays]))
    with tf.Graph().as_default():
        places = [tf.compat.v1.placeholder(a.dtype, a.shape) for a in arrays]
        output = function(*places)
        with tf.compat.v1.Session() as session:
            for _ in range(2):
                yield session.run(output, dict(zip(places, arrays)))


def case_allreduce():
    for got in in_all_modes(
        lambda x: (hvd.allreduce(x), hvd.allreduce(x, op=hvd.Sum), hvd.allreduce(x, average=False)),
        np.full((3, 2), RANK + 1.0, np.float32),
    ):
        np.testing.assert_allclose(got[0], np.full((3, 2), (TOTAL + SIZE) / SIZE), rtol=1e-6)
        np.testing.assert_allclose(got[1], np.full((3, 2), TOTAL + SIZE))
        np.testing.assert_allclose(got[2], got[1])
    for op, expected in ((hvd.Min, 0), (hvd.Max, SIZE - 1), (hvd.Product, 0)):
        for got in in_all_modes(lambda x: hvd.allreduce(x, op=op), np.asarray([RANK], np.int64)):
            assert got.tolist() == [expected]


def case_dtypes():
    @tf.function
    def everything(tensors):
        return [hvd.allreduce(t, op=hvd.Sum) for t in tensors], [hvd.allgather(t) for t in tensors]

    tensors = [tf.cast(tf.fill([4], RANK), dtype) for dtype in DTYPES]
    sums, rows = everything(tensors)
    for dtype, total, gathered in zip(DTYPES, sums, rows):
        assert total.dtype == dtype and gathered.dtype == dtype
        assert np.all(np.asarray(tf.cast(total, tf.complex128)) == TOTAL), dtype
        assert gathered.shape == (4 * SIZE,)
    flags = hvd.allgather(tf.constant([RANK == 0]))
    assert flags.numpy().tolist() == [rank == 0 for rank in range(SIZE)]
    for dtype in (tf.uint32, tf.uint64):
        assert hvd.broadcast(tf.constant([RANK], dtype), SIZE - 1).numpy().tolist() == [SIZE - 1]
        assert hvd.allgather(tf.constant([RANK], dtype)).numpy().tolist() == list(range(SIZE))
    with cases.raises(ValueError, "string", "float32"):
        hvd.allreduce(tf.constant("text"))


def case_scales_are_doubles():
    third = 1.0 / 3.0
    got = hvd.allreduce(
        tf.ones([2], tf.float64), op=hvd.Sum, prescale_factor=third, postscale_factor=third
    )
    np.testing.assert_allclose(got, np.full(2, SIZE * third * third), rtol=1e-15)


def case_empty_and_scalar():
    assert hvd.allreduce(tf.zeros([0, 3])).shape == (0, 3)
    assert float(hvd.allreduce(tf.constant(float(RANK)), op=hvd.Sum)) == TOTAL
    assert hvd.allgather(tf.constant(RANK)).numpy().tolist() == list(range(SIZE))
    assert hvd.allgather(tf.zeros([0, 2])).shape == (0, 2)
    assert hvd.grouped_allreduce([]) == []


def case_grouped():
    a = np.full(5, RANK, np.float32)
    b = np.full((2, 2), RANK * 2, np.int32)
    for got in in_all_modes(lambda x, y: hvd.grouped_allreduce([x, y], op=hvd.Sum), a, b):
        assert got[0].tolist() == [TOTAL] * 5
        assert got[1].tolist() == [[2 * TOTAL] * 2] * 2
    for got in in_all_modes(lambda x, y: hvd.grouped_allgather([x, y]), a, b):
        assert got[0].tolist() == [r for r in range(SIZE) for _ in range(5)]
        assert got[1].tolist() == [[2 * r] * 2 for r in range(SIZE) for _ in range(2)]
    c = np.full((2 * SIZE + 1, 2), RANK, np.int64)
    for got in in_all_modes(
        lambda x, y: hvd.grouped_reducescatter([x, y], op=hvd.Sum), np.ones(SIZE, np.float32), c
    ):
        assert got[0].tolist() == [SIZE]
        assert got[1].tolist() == [[TOTAL] * 2] * (3 if RANK == 0 else 2)
    assert hvd.grouped_allgather([]) == [] and hvd.grouped_reducescatter([]) == []


def case_groups_are_whole():
    """If ranks disagree about one tensor of a group, none of it is done."""
    for function in (hvd.grouped_allgather, hvd.grouped_reducescatter, hvd.grouped_allreduce):
        mine = tf.ones([SIZE], tf.float32 if RANK else tf.float64)
        with cases.raises(Exception, "rank"):
            function([tf.ones([SIZE]), mine], name=f"half.{function.__name__}")


def case_sparse():
    slices = tf.IndexedSlices(
        tf.ones([2, 3]), tf.constant([RANK, SIZE]), tf.constant([SIZE + 1, 3])
    )
    got = tf.convert_to_tensor(hvd.allreduce(slices, op=hvd.Sum))
    assert got.numpy()[:, 0].tolist() == [1.0] * SIZE + [float(SIZE)]
    got = tf.convert_to_tensor(hvd.allreduce(slices))
    np.testing.assert_allclose(got.numpy()[-1], np.ones(3))
    with cases.raises(NotImplementedError, "sparse_as_dense"):
        hvd.allreduce(slices, op=hvd.Max)


def case_allgather_uneven():
    mine = np.full((RANK + 1, 2), RANK, np.float32)
    expected = np.concatenate([np.full((r + 1, 2), r) for r in range(SIZE)])
    for got in in_all_modes(lambda x: hvd.allgather(x), mine):
        assert np.array_equal(got, expected)


def case_broadcast():
    for root in {0, SIZE - 1}:
        for got in in_all_modes(lambda x: hvd.broadcast(x, root), np.full(3, RANK, np.int32)):
            assert got.tolist() == [root] * 3
    variables = [tf.Variable(tf.fill([2], float(RANK))), tf.Variable(RANK)]
    hvd.broadcast_(variables, SIZE - 1)
    assert variables[0].numpy().tolist() == [SIZE - 1] * 2 and int(variables[1]) == SIZE - 1


def case_alltoall():
    mine = np.arange(SIZE, dtype=np.float32) + 10 * RANK
    for got in in_all_modes(lambda x: hvd.alltoall(x), mine):
        assert got.tolist() == [RANK + 10 * r for r in range(SIZE)]
    rows = np.full((RANK + 1) * SIZE, RANK, np.int64)
    splits = np.full(SIZE, RANK + 1, np.int32)
    for got, received in in_all_modes(lambda x, s: hvd.alltoall(x, splits=s), rows, splits):
        assert got.tolist() == [r for r in range(SIZE) for _ in range(r + 1)]
        assert received.dtype == np.int32 and received.tolist() == [r + 1 for r in range(SIZE)]


def case_reducescatter():
    mine = np.full((2 * SIZE + 1, 2), RANK, np.float32)
    for got in in_all_modes(lambda x: hvd.reducescatter(x, op=hvd.Sum), mine):
        assert got.shape == (3 if RANK == 0 else 2, 2)
        assert np.all(got == TOTAL)


def case_ranks_as_tensors():
    @tf.function
    def ask():
        return (
            hvd.rank_op(),
            hvd.size_op(),
            hvd.local_rank_op(),
            hvd.local_size_op(),
            hvd.process_set_included_op(),
        )

    got = [int(each) for each in ask()]
    assert got == [RANK, SIZE, hvd.local_rank(), hvd.local_size(), 1]


def gradient(function, x):
    x = tf.convert_to_tensor(x)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = function(x)
    return tape.gradient(y, x)


def case_gradients():
    weight = float(RANK + 1)
    mean = (TOTAL + SIZE) / SIZE
    rows = np.ones((2, 3), np.float32)
    checks = [
        (lambda x: hvd.allreduce(x) * weight, np.full((2, 3), mean)),
        (lambda x: hvd.allreduce(x, op=hvd.Sum) * weight, np.full((2, 3), mean * SIZE)),
        (lambda x: hvd.grouped_allreduce([x, x])[0] * weight, np.full((2, 3), mean)),
        (lambda x: hvd.allgather(x) * weight, np.full((2, 3), mean)),
        (lambda x: hvd.grouped_allgather([x, x])[1] * weight, np.full((2, 3), mean)),
        (
            lambda x: hvd.broadcast(x, 0) * weight,
            np.full((2, 3), mean if RANK == 0 else 0.0),
        ),
    ]
    for function, expected in checks:
        np.testing.assert_allclose(gradient(function, rows), expected, rtol=1e-6)
        np.testing.assert_allclose(
            tf.function(lambda x: gradient(function, x))(rows), expected, rtol=1e-6
        )
        with tf.Graph().as_default(), tf.compat.v1.Session() as session:
            x = tf.constant(rows)
            (got,) = tf.compat.v1.gradients(function(x), [x])
            np.testing.assert_allclose(session.run(got), expected, rtol=1e-6)
    got = gradient(lambda x: hvd.alltoall(x) * weight, np.ones((SIZE, 2), np.float32))
    np.testing.assert_allclose(got, [[r + 1.0] * 2 for r in range(SIZE)])
    got = gradient(
        lambda x: hvd.alltoall(x, splits=[RANK + 1] * SIZE)[0] * weight,
        np.ones((SIZE * (RANK + 1), 2), np.float32),
    )
    np.testing.assert_allclose(got, [[r + 1.0] * 2 for r in range(SIZE) for _ in range(RANK + 1)])
    got = gradient(lambda x: hvd.reducescatter(x) * weight, np.ones((SIZE, 2), np.float32))
    np.testing.assert_allclose(got, [[r + 1.0] * 2 for r in range(SIZE)])
    got = gradient(
        lambda x: hvd.grouped_reducescatter([x, 2 * x])[1] * weight, np.ones((SIZE, 2), np.float32)
    )
    np.testing.assert_allclose(got, [[2 * (r + 1.0)] * 2 for r in range(SIZE)])
    with cases.raises(Exception, "no gradient"):
        gradient(lambda x: hvd.allreduce(x, op=hvd.Max), rows)


def case_nothing_is_folded_or_left_out():
    """A result that only one rank reads, of a constant; twice the same."""

    @tf.function
    def step():
        one = tf.constant([1.0])
        first = hvd.allreduce(one, op=hvd.Sum)
        second = hvd.allreduce(one, op=hvd.Sum)
        return first if RANK == 0 else second * 0

    before = hvd.mpi_ops.core.counters()["operations"]
    for _ in range(3):
        step()
    assert hvd.mpi_ops.core.counters()["operations"] >= before + 6


def case_order_does_not_matter():
    """Every rank would run these in another order; none may wait for another."""
    if not compiled():
        return  # one after the other, in the order of the program

    @tf.function
    def step(x):
        order = range(20) if RANK % 2 else reversed(range(20))
        parts = {i: hvd.allreduce(x + float(i), op=hvd.Sum, name=f"part.{i}") for i in order}
        return [parts[i] for i in range(20)]

    for _ in range(3):
        for i, got in enumerate(step(tf.zeros([3]))):
            assert float(got[0]) == i * SIZE


def compiled():
    from farandole.tensorflow._backend import backend

    return backend().compiled


def case_loops_and_conditions():
    @tf.function
    def total(n):
        x = tf.zeros([])
        for _ in tf.range(n):
            x = hvd.allreduce(x + 1.0, op=hvd.Average, name="in.loop")
        if n > 2:
            x = hvd.allreduce(x, op=hvd.Sum, name="in.condition")
        return x

    assert float(total(tf.constant(5))) == 5.0 * SIZE
    assert float(total(tf.constant(2))) == 2.0


def case_iterations_at_the_same_time():
    """Iterations that do not depend on each other, in a graph that is another on every rank."""

    def loop(n):
        if RANK == 0:
            n = tf.identity(n + 1) - 1

        def body(i, found):
            slow = tf.reduce_sum(tf.linalg.matmul(tf.ones([50, 50]), tf.ones([50, 50]))) * 0.0
            wait = slow if RANK % 2 else 0.0
            value = hvd.allreduce(tf.cast(i, tf.float32) + wait, op=hvd.Sum, name="at.once")
            return i + 1, found.write(i, value)

        start = (tf.constant(0), tf.TensorArray(tf.float32, size=n))
        return tf.while_loop(lambda i, _: i < n, body, start)[1].stack()

    expected = [float(i * SIZE) for i in range(40)]
    assert tf.function(loop)(tf.constant(40)).numpy().tolist() == expected
    if not compiled():
        return  # in graphs of tf.compat.v1 loops have no order there
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        assert session.run(loop(tf.constant(40))).tolist() == expected


def case_functions_in_functions():
    """Names do not depend on what else a rank's graph has."""
    inner = tf.function(lambda x: hvd.allreduce(x, op=hvd.Sum, name="inner"))

    @tf.function
    def outer(x):
        if RANK == 0:
            other = tf.function(lambda y: tf.cond(y > 0.0, lambda: y * 2.0, lambda: y))
            x = x + 0.0 * other(x)
        return inner(x) + inner(x + 1.0) + tf.cond(x > 0.0, lambda: inner(x), lambda: x)

    for _ in range(2):
        assert float(outer(tf.constant(1.0))) == 4.0 * SIZE


def case_process_sets():
    even = hvd.add_process_set(list(range(0, SIZE, 2)))
    odd = hvd.add_process_set(list(range(1, SIZE, 2))) if SIZE > 1 else None
    mine: Any = even if RANK % 2 == 0 else odd
    for got in in_all_modes(
        lambda x: hvd.allreduce(x, op=hvd.Sum, process_set=mine, name="in.set"),
        np.asarray([RANK], np.int32),
    ):
        assert got.tolist() == [sum(mine.ranks)]
    assert int(hvd.size_op(mine.process_set_id)) == len(mine.ranks)
    for each in (odd, even):
        if each is not None:
            hvd.remove_process_set(each)


def case_objects_and_variables():
    assert hvd.broadcast_object({"rank": RANK}, 0) == {"rank": 0}
    assert hvd.broadcast_object_fn(0)(RANK) == 0
    assert hvd.allgather_object(RANK) == list(range(SIZE))
    variables = [tf.Variable(tf.fill([3], float(RANK))), tf.Variable([RANK, 1])]
    hvd.broadcast_variables(variables, SIZE - 1)
    assert variables[0].numpy().tolist() == [SIZE - 1] * 3
    with cases.raises(RuntimeError, "broadcast_variables"):
        hvd.broadcast_global_variables(0)


def case_mismatch_names_ranks_and_all_goes_on():
    if SIZE == 1:
        return
    shape = [2] if RANK else [3]
    with cases.raises(tf.errors.OpError if compiled() else Exception, "odd.one", "rank"):
        hvd.allreduce(tf.zeros(shape), name="odd.one")
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        x = tf.compat.v1.placeholder(tf.float32, [None])
        y = hvd.allreduce(x, op=hvd.Sum, name="odd.two")
        with cases.raises(tf.errors.OpError, "odd.two", "rank"):
            session.run(y, {x: np.zeros(shape)})
        assert session.run(y, {x: np.ones(4)}).tolist() == [SIZE] * 4
    function = tf.function(
        lambda x: hvd.allreduce(x, op=hvd.Sum, name="odd.three"),
        input_signature=[tf.TensorSpec([None])],
    )
    with cases.raises(tf.errors.OpError, "odd.three", "rank"):
        function(tf.zeros(shape))
    assert function(tf.ones([4])).numpy().tolist() == [SIZE] * 4


def case_mismatch_among_many():
    """What else was in flight ends, too, on all ranks alike; the next steps are whole."""
    if not compiled():
        return
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        odd = tf.compat.v1.placeholder(tf.float32, [None])
        x = tf.compat.v1.placeholder(tf.float32, [])
        parts = [hvd.allreduce(x + float(i), op=hvd.Sum, name=f"even.{i}") for i in range(20)]
        total = hvd.allreduce(odd, op=hvd.Sum, name="odd.four")
        for step in range(5):
            with cases.raises(tf.errors.InvalidArgumentError, "odd.four", "rank"):
                session.run([parts, total], {odd: np.zeros(RANK + 1), x: 100.0 * step})
            got, all_ = session.run([parts, total], {odd: np.ones(2), x: float(step)})
            assert got == [(step + i) * SIZE for i in range(20)] and all_.tolist() == [SIZE] * 2


def case_ctrl_c():
    """KeyboardInterrupt although another rank never comes; the job goes on."""
    wait = tf.function(lambda x: hvd.allreduce(x, op=hvd.Sum, name="interrupted"))
    wait(tf.ones([2]))
    if RANK == 0:
        timer = threading.Timer(1.0, lambda: os.kill(os.getpid(), signal.SIGINT))
        timer.start()
        with cases.raises(KeyboardInterrupt):
            wait(tf.ones([2]))
            timer.join()
    again = tf.function(lambda x: hvd.allreduce(x, op=hvd.Sum, name="after.interrupt"))
    assert again(tf.ones([2])).numpy().tolist() == [SIZE] * 2


def case_xla():
    with cases.raises(Exception, "jit_compile=False"):
        tf.function(lambda x: hvd.allreduce(x), jit_compile=True)(tf.ones([2]))
    square = tf.function(lambda x: x * x, jit_compile=True)
    around = tf.function(lambda x: hvd.allreduce(square(x), op=hvd.Sum))
    assert around(tf.fill([2], 2.0)).numpy().tolist() == [4.0 * SIZE] * 2


def case_not_initialised_says_so():
    hvd.shutdown()
    with cases.raises(ValueError, "init()"):
        hvd.allreduce(tf.ones([1]))
    hvd.init()
    assert float(hvd.allreduce(tf.ones([]), op=hvd.Sum)) == SIZE


def case_threads():
    """Two functions at once, from two threads."""
    results = {}

    def work(name):
        function = tf.function(lambda x: hvd.allreduce(x, op=hvd.Sum, name=name))
        results[name] = [float(function(tf.constant(float(i)))) for i in range(20)]

    threads = [threading.Thread(target=work, args=(name,)) for name in ("left", "right")]
    for each in threads:
        each.start()
    for each in threads:
        each.join(60)
    assert results == {name: [i * SIZE for i in range(20)] for name in ("left", "right")}


def case_join():
    for i in range(RANK + 1):
        total = hvd.allreduce(tf.ones([2]), op=hvd.Sum, name=f"until.join.{i}")
        assert float(total[0]) == SIZE - i
    assert int(hvd.join()) == SIZE - 1
    hvd.barrier()


wanted = os.environ.get("FARANDOLE_TENSORFLOW_OPS")
if wanted:
    assert compiled() == (wanted == "compiled"), wanted
cases.run(globals())
