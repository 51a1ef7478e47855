"""farandole.core on plain memory: any number of ranks."""

from __future__ import annotations

import array
import gc
import os
import sys
import threading
import time
from typing import Any

import cases
import farandole
from cases import raises
from farandole import core, errors
from farandole.core import DType, ReduceOp

assert "numpy" not in sys.modules and "torch" not in sys.modules

with raises(ValueError, "init()"):
    farandole.rank()
with raises(errors.NotInitialised):
    core.barrier()
assert not farandole.is_initialised()

farandole.init()
farandole.init()  # does nothing
RANK, SIZE = farandole.rank(), farandole.size()


def floats(*values):
    made = array.array("f", values)
    return made, made.buffer_info()[0]


def case_identity():
    assert 0 <= RANK < SIZE
    assert farandole.local_rank() == RANK and farandole.local_size() == SIZE
    assert farandole.cross_rank() == 0 and farandole.cross_size() == 1
    assert farandole.is_homogeneous()


def case_allreduce():
    data, place = floats(RANK + 1, 2)
    core.allreduce(place, place, 2, DType.FLOAT32, keep=data).wait()
    assert list(data) == [SIZE * (SIZE + 1) / 2, 2 * SIZE]
    out, to = floats(0, 0)
    data, place = floats(RANK, 5)
    handle = core.allreduce(
        place, to, (2, 1), DType.FLOAT32, ReduceOp.MAX, name="max", postscale=2.0, keep=(data, out)
    )
    handle.wait()
    assert list(out) == [2 * (SIZE - 1), 10] and list(data) == [RANK, 5]
    assert handle.done() and handle.exception() is None


def case_gather_scatter():
    data, place = floats(*[RANK] * (RANK + 1))
    handle = core.allgather(place, (RANK + 1,), DType.FLOAT32, keep=data)
    result = handle.result()
    assert result.splits == tuple(range(1, SIZE + 1)) and result.shape == (sum(result.splits),)
    got = array.array("f", bytes(core.result_view(handle)))
    assert list(got) == [r for r in range(SIZE) for _ in range(r + 1)]
    root = SIZE - 1
    handle = core.gather(place, (RANK + 1,), DType.FLOAT32, root)
    if root == RANK:
        assert array.array("f", bytes(core.result_view(handle))) == got
    handle.wait()
    data, place = floats(*range(SIZE))
    handle = core.scatter(place if RANK == 0 else 0, SIZE, DType.FLOAT32, 0, keep=data)
    assert list(array.array("f", bytes(core.result_view(handle)))) == [RANK]
    handle = core.reducescatter(place, SIZE, DType.FLOAT32, keep=data)
    assert list(array.array("f", bytes(core.result_view(handle)))) == [SIZE * RANK]
    handle = core.alltoall(place, SIZE, DType.FLOAT32, keep=data)
    assert list(array.array("f", bytes(core.result_view(handle)))) == [RANK] * SIZE
    out, to = floats(*[0] * SIZE)
    core.reduce(place, to, SIZE, DType.FLOAT32, root, keep=(data, out)).wait()
    assert root != RANK or list(out) == [SIZE * each for each in range(SIZE)]


def case_broadcast_and_barrier():
    data, place = floats(RANK)
    core.broadcast(place, place, 1, DType.FLOAT32, SIZE - 1, keep=data).wait()
    assert data[0] == SIZE - 1
    farandole.barrier()


def case_send_receive():
    if SIZE == 1:
        return
    data, place = floats(RANK)
    if RANK == 0:
        seen = set()
        for _ in range(SIZE - 1):
            handle = core.recv(place, 1, DType.FLOAT32, tag=7, keep=data)
            source = handle.result().source
            assert data[0] == source
            seen.add(source)
        assert seen == set(range(1, SIZE))
    else:
        core.send(place, 1, DType.FLOAT32, 0, tag=7, keep=data).wait()
    farandole.barrier()


def case_notification():
    told = threading.Event()
    where = []

    def notify(handle):
        where.append((handle.done(), threading.current_thread().name))
        told.set()

    data, place = floats(1)
    core.allreduce(place, place, 1, DType.FLOAT32, keep=data, notify=notify)
    assert told.wait(30)
    assert where == [(True, "farandole-completions")]


def case_forgotten_handles_keep_their_buffers():
    if SIZE == 1:
        return
    data, place = floats(*[1.0] * 1000)
    if RANK == 0:
        core.allreduce(place, place, 1000, DType.FLOAT32, name="forgotten", keep=data)
        kept = sys.getrefcount(data)
        gc.collect()
        assert kept > 2 and core.handles_in_flight() == 1
    farandole.barrier()
    if RANK != 0:
        core.allreduce(place, place, 1000, DType.FLOAT32, name="forgotten", keep=data).wait()
    farandole.barrier()
    deadline = time.monotonic() + 30
    while core.handles_in_flight() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert core.handles_in_flight() == 0 and data[-1] == SIZE


def case_timeout_and_cancel():
    if SIZE == 1:
        return
    if RANK == 0:
        data, place = floats(1)
        handle = core.allreduce(place, place, 1, DType.FLOAT32, name="alone", keep=data)
        with raises(errors.Timeout, "alone"):
            handle.wait(0.05)
        with raises(TimeoutError):
            handle.wait(0)
        assert handle.cancel()
        with raises(errors.Cancelled):
            handle.wait()
    farandole.barrier()


def case_duplicate_name():
    if SIZE == 1:
        return
    data, place = floats(1)
    if RANK == 0:
        handle = core.allreduce(place, place, 1, DType.FLOAT32, name="twice", keep=data)
        other, there = floats(1)
        with raises(ValueError, "twice"):
            core.allreduce(there, there, 1, DType.FLOAT32, name="twice", keep=other)
        farandole.barrier()
        handle.wait()
    else:
        farandole.barrier()
        core.allreduce(place, place, 1, DType.FLOAT32, name="twice", keep=data).wait()
    assert data[0] == SIZE


def case_mismatch():
    if SIZE == 1:
        return
    data, place = floats(*[1] * 8)
    with raises(errors.Mismatch, "'shapes'", "rank 0", f"rank {SIZE - 1}"):
        count = 4 if RANK < SIZE - 1 else 5
        core.allreduce(place, place, count, DType.FLOAT32, name="shapes", keep=data).wait()
    with raises(RuntimeError, "'dtypes'"):
        kind = DType.FLOAT32 if RANK else DType.INT32
        core.allreduce(place, place, 4, kind, name="dtypes", keep=data).wait()
    with raises(errors.OperationFailed, "'roots'"):
        core.broadcast(place, place, 4, DType.FLOAT32, min(RANK, 1), name="roots").wait()
    farandole.barrier()  # the job goes on


def case_outputs_that_are_too_small():
    if SIZE == 1:
        return
    data, place = floats(*range(8 * SIZE))
    out, to = floats(*[-1] * 8)
    # All but one have one row, and room for as many as there are ranks.
    rows = 8 if RANK == SIZE - 1 else 1
    told = {"output_bytes": 32} if RANK else {}
    for start, more in (
        (core.allgather, {}),
        (core.gather, {"root": 0}),
        (core.alltoall, {"splits": [rows] + [0] * (SIZE - 1)}),
        (core.scatter, {"root": SIZE - 1, "splits": [8] + [0] * (SIZE - 1)}),
    ):
        fields: dict[str, Any] = {**told, **more}
        with raises(errors.Mismatch, "the output of rank 0", "has room for"):
            start(place, rows, DType.FLOAT32, output=to, keep=(data, out), **fields).wait()
        assert list(out) == [-1] * 8
    with raises(ValueError, "room for 7 bytes, but 8 are needed"):
        core.allreduce(place, to, 2, DType.FLOAT32, output_bytes=7)
    farandole.barrier()  # the job goes on


def case_bad_arguments():
    _data, place = floats(1)
    with raises(ValueError, "process set 99"):
        core.allreduce(place, place, 1, DType.FLOAT32, process_set=99)
    with raises(ValueError, "root"):
        core.broadcast(place, place, 1, DType.FLOAT32, SIZE, name="nobody")
    with raises(ValueError, "dtype"):
        core.allreduce(place, place, 1, 77)
    with raises(ValueError, "not defined"):
        core.allreduce(place, place, 1, DType.FLOAT32, ReduceOp.BXOR)
    with raises(ValueError, "splits"):
        core.alltoall(place, SIZE, DType.FLOAT32, splits=[1] * (SIZE + 1))


def case_process_sets():
    with raises(ValueError, "no rank"):
        farandole.add_process_set([SIZE])
    again = farandole.add_process_set(range(SIZE))  # the same ranks, on their own
    core.barrier(again)
    assert again.process_set_id != 0 and farandole.remove_process_set(again)
    if SIZE == 1:
        return
    late = farandole.ProcessSet([0])
    with raises(ValueError, "not been added"):
        core.barrier(late)
    evens = farandole.add_process_set([r for r in range(SIZE) if r % 2 == 0])
    odds = farandole.add_process_set([r for r in range(SIZE) if r % 2 == 1])
    assert evens.included() != odds.included()
    mine, other = (evens, odds) if evens.included() else (odds, evens)
    assert mine.rank() == RANK // 2 and other.rank() == -1
    data, place = floats(1)
    core.allreduce(place, place, 1, DType.FLOAT32, process_set=mine, keep=data).wait()
    assert data[0] == mine.size()
    with raises(ValueError, f"rank {RANK} is not a member"):
        core.allreduce(place, place, 1, DType.FLOAT32, process_set=other)
    assert farandole.remove_process_set(mine) and not farandole.remove_process_set(mine)
    assert not farandole.remove_process_set(farandole.global_process_set)
    assert farandole.remove_process_set(other)


def case_join():
    if RANK == 0:
        assert farandole.join() in range(SIZE)
        return
    data, place = floats(1)
    core.allreduce(place, place, 1, DType.FLOAT32, name="joined", keep=data).wait()
    assert data[0] == SIZE - 1
    assert farandole.join() in range(SIZE)


def case_fork():
    child = os.fork()
    if child == 0:
        code = 1
        try:
            assert farandole.rank() == RANK
            try:
                farandole.barrier()
            except errors.Forked as error:
                code = 0 if "forked" in str(error) else 2
            farandole.shutdown()  # does nothing
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
    farandole.barrier()


def case_shared_memory():
    buffer = core.SharedBuffer(4096)
    view = memoryview(buffer.view()).cast("B").cast("f")
    view[0] = RANK
    core.allreduce(buffer.address, buffer.address, 1024, DType.FLOAT32, keep=buffer).wait()
    assert view[0] == SIZE * (SIZE - 1) / 2
    assert buffer.is_shared()


def case_repeated_init():
    kept = farandole.add_process_set([0]) if SIZE > 1 else None
    buffer = core.SharedBuffer(64)
    for _ in range(20):
        farandole.shutdown()
        farandole.shutdown()
        assert not farandole.is_initialised()
        farandole.init()
        farandole.barrier()
    assert kept is None or kept.process_set_id is None
    assert len(farandole.get_process_sets()) == 1
    core.allreduce(buffer.address, buffer.address, 4, DType.FLOAT32, keep=buffer).wait()


def case_timeline():
    path = f"/tmp/farandole-test-timeline-{os.environ.get('FARANDOLE_JOB', os.getpid())}.json"
    farandole.start_timeline(path)
    farandole.barrier()
    farandole.stop_timeline()
    farandole.barrier()
    if RANK == 0:
        assert os.path.getsize(path) > 0
        os.unlink(path)


cases.run(globals())
