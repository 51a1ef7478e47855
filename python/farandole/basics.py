"""The basic functions of Horovod. `*_built` and `*_enabled` also work before init()."""

from __future__ import annotations

from typing import Sequence

from . import core
from .core import (
    cross_rank,
    cross_size,
    is_homogeneous,
    local_rank,
    local_size,
    rank,
    remove_process_set,
    shutdown,
    size,
    stop_timeline,
)
from .core import is_initialised as is_initialized
from .errors import InvalidArgument
from .process_sets import ProcessSet, global_process_set

__all__ = [
    "ProcessSet",
    "add_process_set",
    "ccl_built",
    "cross_rank",
    "cross_size",
    "cuda_built",
    "ddl_built",
    "global_process_set",
    "gloo_built",
    "gloo_enabled",
    "init",
    "is_homogeneous",
    "is_initialized",
    "local_rank",
    "local_size",
    "mpi_built",
    "mpi_enabled",
    "mpi_threads_supported",
    "nccl_built",
    "rank",
    "remove_process_set",
    "rocm_built",
    "shutdown",
    "size",
    "start_timeline",
    "stop_timeline",
]


def init(
    comm: object = None,
    process_sets: Sequence[ProcessSet | Sequence[int]] | str | None = None,
) -> None:
    """comm: nothing, or all ranks. process_sets: a list, or "dynamic", which is always so."""
    if process_sets == "dynamic":
        process_sets = None
    if isinstance(process_sets, str):
        raise ValueError('process_sets is a list of process sets or "dynamic"')
    if comm is not None and not isinstance(comm, (list, tuple)):
        raise InvalidArgument(
            "init(comm=…) with a communicator of MPI is not possible: leave it away, and use "
            "process sets for a part of the ranks"
        )
    core.init()
    if comm and sorted(comm) != list(range(core.size())):
        core.shutdown()
        raise InvalidArgument(
            f"init(comm={list(comm)}): a part of the ranks cannot be the world; use "
            "init(process_sets=[ProcessSet(…)]) and process_set=… in the calls"
        )
    for each in process_sets or ():
        add_process_set(each)


def add_process_set(process_set: ProcessSet | Sequence[int]) -> ProcessSet:
    """A second set of the same ranks is refused, as in Horovod."""
    if not isinstance(process_set, ProcessSet):
        process_set = ProcessSet(process_set)
    for other in core.get_process_sets().values():
        if other.ranks == process_set.ranks and other is not global_process_set:
            raise InvalidArgument(f"a process set of these ranks exists: {other}")
    return core.add_process_set(process_set)


def start_timeline(file_path: str, mark_cycles: bool = False) -> None:
    """There are no cycles here: mark_cycles marks nothing."""
    core.start_timeline(file_path)


def mpi_threads_supported() -> bool:
    core.require_initialised()
    return False


def mpi_enabled() -> bool:
    return False


def mpi_built() -> bool:
    return False


def gloo_enabled() -> bool:
    """True, because scripts use it to find out whether they can run without MPI."""
    return True


def gloo_built() -> bool:
    return True


def nccl_built() -> int:
    return 0


def ddl_built() -> bool:
    return False


def ccl_built() -> bool:
    return False


def cuda_built() -> bool:
    return False


def rocm_built() -> bool:
    return False
