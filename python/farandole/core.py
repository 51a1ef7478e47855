"""The core: life, ranks, process sets, and operations on raw memory, without NumPy or PyTorch.

The one list of what there is; each name is defined in the module it is imported from here. What
is built on the core (`farandole.numpy`, `.torch`, `.tensorflow`, `.c10d`) takes it from here.
"""

from __future__ import annotations

from .dtypes import DType, ReduceOp
from .handles import Handle, Result, forked, handles_in_flight, submit, submit_group
from .life import init, shutdown
from .memory import SharedBuffer, result_view
from .observation import counters, start_timeline, stop_timeline
from .operations import (
    ANY_RANK,
    allgather,
    allreduce,
    alltoall,
    barrier,
    barrier_async,
    broadcast,
    gather,
    join,
    join_async,
    recv,
    reduce,
    reducescatter,
    scatter,
    send,
)
from .process_sets import (
    AnySet,
    ProcessSet,
    add_process_set,
    get_process_sets,
    global_process_set,
    members,
    remove_process_set,
    set_id,
)
from .requests import Request
from .world import (
    cross_rank,
    cross_size,
    generation,
    is_homogeneous,
    is_initialised,
    local_rank,
    local_size,
    rank,
    require_initialised,
    size,
)

__all__ = [
    "ANY_RANK",
    "AnySet",
    "DType",
    "Handle",
    "ProcessSet",
    "ReduceOp",
    "Request",
    "Result",
    "SharedBuffer",
    "add_process_set",
    "allgather",
    "allreduce",
    "alltoall",
    "barrier",
    "barrier_async",
    "broadcast",
    "counters",
    "cross_rank",
    "cross_size",
    "forked",
    "gather",
    "generation",
    "get_process_sets",
    "global_process_set",
    "handles_in_flight",
    "init",
    "is_homogeneous",
    "is_initialised",
    "join",
    "join_async",
    "local_rank",
    "local_size",
    "members",
    "rank",
    "recv",
    "reduce",
    "reducescatter",
    "remove_process_set",
    "require_initialised",
    "result_view",
    "scatter",
    "send",
    "set_id",
    "shutdown",
    "size",
    "start_timeline",
    "stop_timeline",
    "submit",
    "submit_group",
]
