"""The core: life, ranks, process sets; and, from `operations`, what can be done with raw memory."""

from __future__ import annotations

import ctypes
import os
import threading
from ctypes import byref, c_int32
from typing import Callable, NamedTuple, Sequence

from . import _abi, leaving
from .dtypes import DType, ReduceOp
from .errors import InvalidArgument, NotInitialised
from .handles import Handle, Request, Result, forked, handles_in_flight, submit, submit_group
from .memory import SharedBuffer, result_view
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
from .process_sets import AnySet, ProcessSet, global_process_set, set_id

__all__ = [
    "ANY_RANK",
    "DType",
    "Handle",
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
    "forked",
    "gather",
    "generation",
    "get_process_sets",
    "handles_in_flight",
    "init",
    "is_initialised",
    "join",
    "join_async",
    "rank",
    "recv",
    "reduce",
    "reducescatter",
    "remove_process_set",
    "result_view",
    "scatter",
    "send",
    "shutdown",
    "size",
    "submit",
    "submit_group",
]

# ---- Life


class _Identity(NamedTuple):
    rank: int
    size: int
    local_rank: int
    local_size: int
    cross_rank: int
    cross_size: int


_identity: _Identity | None = None
_generation = 0
_sets: dict[int, ProcessSet] = {}


def init(
    timeout: float | None = None,
    process_sets: Sequence[ProcessSet | Sequence[int]] | None = None,
) -> None:
    """Joins the job this process was started in, or makes a job of one rank.

    timeout: seconds until all ranks must be there (default: FARANDOLE_START_TIMEOUT). A second call
    without a shutdown between does nothing.
    """
    global _identity, _generation
    library = _abi.library()
    if not library.is_initialised():
        options = _abi.InitOptions(ctypes.sizeof(_abi.InitOptions), 0, int((timeout or 0) * 1000))
        _interruptibly(lambda: _abi.check(library.init(byref(options))))
        _identity = _Identity(
            library.rank(),
            library.size(),
            library.local_rank(),
            library.local_size(),
            library.cross_rank(),
            library.cross_size(),
        )
        _generation += 1
        _forget_sets()
        global_process_set.ranks = list(range(_identity.size))
        _sets[0] = global_process_set
    elif _identity is None:  # something else in this process initialised the library
        raise NotInitialised("Farandole was initialised by another part of this process")
    leaving.install(_identity.size)
    for each in process_sets or ():
        add_process_set(each)


def _interruptibly(call: Callable[[], None]) -> None:
    """Runs a call that may take long where Ctrl-C is answered meanwhile."""
    # MPI wants to be started by the main thread; and a job of one rank waits for nobody.
    if "FARANDOLE_AGENT" not in os.environ or (
        threading.current_thread() is not threading.main_thread()
    ):
        return call()
    failure: list[BaseException] = []
    done = threading.Event()

    def body() -> None:
        try:
            call()
        except BaseException as error:
            failure.append(error)
        finally:
            done.set()

    threading.Thread(target=body, name="farandole-init", daemon=True).start()
    while not done.wait(0.2):
        pass
    if failure:
        raise failure[0]


def shutdown() -> None:
    """Leaves the job. Operations in flight end as ShutDown. May be repeated."""
    global _identity
    if forked():
        return
    _identity = None
    _forget_sets()
    _abi.check(_abi.library().shutdown())


def _forget_sets() -> None:
    for each in _sets.values():
        if each is not global_process_set:
            each.process_set_id = None
    _sets.clear()
    global_process_set.ranks = None


def is_initialised() -> bool:
    return _identity is not None


def generation() -> int:
    """Counts this process's inits; 0 before the first."""
    return _generation


def require_initialised() -> _Identity:
    if _identity is None:
        raise NotInitialised("Farandole has not been initialised: call init() first")
    return _identity


def rank() -> int:
    """These also answer in a fork child, where operations do not work."""
    return require_initialised().rank


def size() -> int:
    return require_initialised().size


def local_rank() -> int:
    return require_initialised().local_rank


def local_size() -> int:
    return require_initialised().local_size


def cross_rank() -> int:
    return require_initialised().cross_rank


def cross_size() -> int:
    return require_initialised().cross_size


def is_homogeneous() -> bool:
    """Whether all machines have equally many ranks."""
    identity = require_initialised()
    return identity.local_size * identity.cross_size == identity.size


# ---- Process sets


def add_process_set(process_set: ProcessSet | Sequence[int]) -> ProcessSet:
    """Makes a set usable. All ranks must call it, in the same order; only the members wait.

    Several sets of the same ranks are possible: they progress independently.
    """
    identity = require_initialised()
    if not isinstance(process_set, ProcessSet):
        process_set = ProcessSet(process_set)
    if process_set.process_set_id is not None:
        raise InvalidArgument(f"{process_set} has been added already")
    ranks = process_set.ranks or []
    if ranks[-1] >= identity.size:
        raise InvalidArgument(f"there is no rank {ranks[-1]}: the job has {identity.size} ranks")
    number = c_int32()
    array = (c_int32 * len(ranks))(*ranks)
    _abi.check(_abi.library().add_set(array, len(ranks), byref(number)))
    process_set.process_set_id = number.value
    _sets[number.value] = process_set
    return process_set


def remove_process_set(process_set: AnySet) -> bool:
    """False if there is no such set, or if it is the world."""
    require_initialised()
    number = process_set if isinstance(process_set, int) else process_set.process_set_id
    if not number or number not in _sets:
        return False
    _abi.check(_abi.library().remove_set(number))
    _sets.pop(number).process_set_id = None
    return True


def get_process_sets() -> dict[int, ProcessSet]:
    """The sets by their numbers."""
    require_initialised()
    return dict(_sets)


def members(process_set: AnySet = 0) -> list[int]:
    """The set's ranks, in their order."""
    require_initialised()
    number = set_id(process_set)
    found = _sets.get(number)
    if found is None:
        raise InvalidArgument(f"there is no process set {number}")
    return list(found.ranks or [])


# ---- Observation


def start_timeline(path: str) -> None:
    """Writes a Chrome trace of all ranks of this machine. All ranks call it."""
    _abi.check(_abi.library().start_timeline(os.fsencode(path)))


def stop_timeline() -> None:
    _abi.check(_abi.library().stop_timeline())


def counters() -> dict[str, int]:
    """Operations, engine batches, bytes, plan hits and misses, bytes reduced without a copy."""
    info = _abi.CountersInfo(ctypes.sizeof(_abi.CountersInfo))
    _abi.check(_abi.library().get_counters(byref(info)))
    names = ("operations", "batches", "bytes", "plan_hits", "plan_misses", "zero_copy_bytes")
    return {name: getattr(info, name) for name in names}
