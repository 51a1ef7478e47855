"""c10d_faults.py CASE...: what the backend says when something is wrong."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import time
from datetime import timedelta
from unittest import mock

import torch
import torch.distributed as dist

RANK = int(os.environ["RANK"])


def raises(kind, text, call):
    try:
        call()
    except kind as error:
        assert text in str(error), f"{text!r} is not in: {error}"
        return
    raise AssertionError(f"{kind.__name__} was expected")


def wrong_size():
    raises(
        RuntimeError,
        "world_size=5, in this job it is 2",
        lambda: dist.init_process_group("farandole", world_size=5, rank=RANK),
    )


def mismatch():
    # Every error leaves the job able to go on.
    raises(RuntimeError, "shape: rank", lambda: dist.all_reduce(torch.zeros(3 + RANK)))
    raises(
        RuntimeError,
        "dtype: rank",
        lambda: dist.all_reduce(torch.zeros(3, dtype=(torch.int32, torch.int64)[RANK])),
    )
    op = (dist.ReduceOp.SUM, dist.ReduceOp.MAX)[RANK]
    raises(RuntimeError, "op: rank", lambda: dist.all_reduce(torch.zeros(3), op))
    raises(RuntimeError, "root: rank", lambda: dist.broadcast(torch.zeros(3), RANK))
    raises(
        RuntimeError,
        "shape: rank",
        lambda: dist.all_gather([torch.zeros(2 + RANK)] * 2, torch.zeros(2 + RANK)),
    )
    raises(
        RuntimeError,
        "splits must fit",
        lambda: dist.all_to_all_single(
            torch.zeros(4), torch.zeros(4), [2, 2], [1 + 2 * RANK, 3 - 2 * RANK]
        ),
    )
    future = dist.all_reduce(torch.zeros(3 + RANK), async_op=True).get_future()
    raises(RuntimeError, "shape: rank", future.wait)
    tensor = torch.ones(2)
    dist.all_reduce(tensor)
    assert tensor.tolist() == [2.0, 2.0]


def lie():
    """A rank that sends more than all others expect does not write into their memory."""
    from farandole import _abi
    from farandole.c10d.group import Group

    honest = Group._start
    much = torch.ones(1000)
    rows = (ctypes.c_int64 * 2)(100, 2)

    def start(self, name, request, *rest):
        if request.operation in (_abi.ALLGATHER, _abi.GATHER):
            request.shape, request.input, request.output = rows, much.data_ptr(), 0
        return honest(self, name, request, *rest)

    here = torch.zeros(2)
    parts = [torch.zeros(2), torch.zeros(2)]
    whole = torch.zeros(4)
    with mock.patch.object(Group, "_start", start if RANK == 1 else honest):
        for call in (
            lambda: dist.all_gather(parts, here),
            lambda: dist.all_gather_into_tensor(whole, here),
            lambda: dist.gather(here, parts if RANK == 0 else None, 0),
        ):
            raises(RuntimeError, "the output of rank 0 on", call)
    assert not any(each.any() for each in (*parts, whole))
    dist.all_reduce(here)


def refused():
    """What docs/torch-distributed.md lists as not possible is called by its name."""
    raises(
        ValueError,
        "ReduceOp.PREMUL_SUM is not possible with the backend farandole",
        lambda: dist.all_reduce(torch.ones(2), dist._make_nccl_premul_sum(2.0)),
    )
    two = [torch.ones(1), torch.ones(1)]
    group = dist.distributed_c10d._get_default_group()
    for call in (
        lambda: group.allreduce(two),
        lambda: group.broadcast(two, dist.BroadcastOptions()),
        lambda: group.allgather([two], two),
    ):
        raises(RuntimeError, "several devices per process are not possible", call)
    if hasattr(dist, "all_reduce_multigpu"):
        raises(RuntimeError, "one tensor per rank", lambda: dist.all_reduce_multigpu(two))
    if hasattr(dist, "split_group"):
        raises(RuntimeError, "split", lambda: dist.split_group(split_ranks=[[0], [1]]))
    dist.barrier()


def wrong_calls():
    raises(
        RuntimeError,
        "one tensor per rank",
        lambda: dist.distributed_c10d._get_default_group().allreduce([torch.ones(1)] * 2),
    )
    raises(
        ValueError,
        "list of 1 tensors for a group of 2",
        lambda: dist.all_gather([torch.zeros(2)], torch.zeros(2)),
    )
    raises(RuntimeError, "layout", lambda: dist.broadcast(torch.zeros(2, 2).to_sparse(), 0))
    raises(
        ValueError,
        "not defined for float32",
        lambda: dist.all_reduce(torch.ones(2), dist.ReduceOp.BXOR),
    )
    raises(
        ValueError,
        "cannot be divided equally",
        lambda: dist.all_to_all_single(torch.zeros(3), torch.zeros(3)),
    )
    group = dist.new_group()
    dist.destroy_process_group(group)
    raises(RuntimeError, "has been destroyed", lambda: group.allreduce([torch.ones(1)]))
    if os.fork() == 0:
        try:
            dist.all_reduce(torch.ones(1))
        except RuntimeError as error:
            os._exit(0 if "fork" in str(error) else 1)
        os._exit(2)
    assert os.wait()[1] == 0
    dist.barrier()


def timeout():
    group = dist.new_group(timeout=timedelta(seconds=0.5))
    if RANK == 0:
        raises(TimeoutError, "was not done within 0.5 s", lambda: dist.barrier(group=group))
    dist.barrier()
    if RANK == 0:
        raises(
            RuntimeError,
            "rank(s) 1 did not come",
            lambda: dist.monitored_barrier(timeout=timedelta(seconds=0.5)),
        )
    dist.barrier()


def killed():
    signal.signal(
        signal.SIGTERM, signal.SIG_IGN
    )  # the launcher's; the library's word is to be heard
    dist.barrier()
    if RANK == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    try:
        for _ in range(1000):
            dist.all_reduce(torch.ones(1000))
    except RuntimeError as error:
        print("told:", error, flush=True)
        time.sleep(0.2)
        raise


def killed_in_backward():
    net = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(10, 10))
    for step in range(1000):
        loss = net(torch.ones(2, 10)).sum()
        if RANK == 1 and step == 3:
            os.kill(os.getpid(), signal.SIGKILL)
        loss.backward()


def exception():
    if RANK == 1:
        raise ValueError("this is the cause")
    dist.all_reduce(torch.ones(5))


wrong_size()
dist.init_process_group("farandole")
for case in sys.argv[1:]:
    globals()[case]()
    print(f"{case}: fine", flush=True)
dist.destroy_process_group()
