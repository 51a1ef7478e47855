"""What a process group is, and how its operations are started."""

from __future__ import annotations

import ctypes
from datetime import timedelta
from typing import Any, Sequence

import torch
from torch._C import _distributed_c10d as _c10d
from torch.distributed import distributed_c10d

from .. import _abi, core, errors
from .._library import library
from ..process_sets import make_set
from . import memory
from .home import Home
from .work import Done, Finish, Work, run

# c10d's contract: all members call a group's collectives in the same order.
ORDERED = _abi.FLAG_ORDERED
ORDERED_WAITING = _abi.FLAG_ORDERED | _abi.FLAG_WILL_WAIT


class Group(_c10d.ProcessGroup):
    """Ranks that work together, over a process set of their own."""

    def __init__(self, rank: int, size: int, ranks: Sequence[int], timeout: timedelta) -> None:
        super().__init__(rank, size)
        self._ranks = list(ranks)
        self._me = rank
        self._group_name = self._group_text = ""
        self._made = False
        self._members = size
        self._limit = timeout.total_seconds()
        self._home = Home.here()
        self._done = Done(self._home, "done", [])
        self._set = make_set(self._ranks)
        self._generation = core.generation()

    def rank(self) -> int:
        return self._me

    def size(self) -> int:
        return self._members

    def name(self) -> str:
        return "farandole"

    # C++ asks for these by the names of its own methods.
    getBackendName = _get_backend_name = name
    getRank = rank
    getSize = size

    def setGroupName(self, name: str) -> None:
        self._group_name = name

    def getGroupName(self) -> str:
        return self._group_name

    def setGroupDesc(self, text: str) -> None:
        self._group_text = text

    def getGroupDesc(self) -> str:
        return self._group_text

    @property
    def _device_types(self) -> list[torch.device]:
        """Nothing while the group is being made: PyTorch's flight recorder must not attach itself,
        because it knows only groups whose backends are C++."""
        if not self._made:
            world = getattr(distributed_c10d, "_world", None)
            self._made = world is None or self in world.pg_map
        return [torch.device("cpu")] if self._made else []

    # Newer versions ask what a backend can do beyond collectives.
    supports_coalescing = supports_splitting = supports_shrinking = False
    supports_reconfigure = supports_window = supports_abort_hooks = False
    _supports_time_estimate = False

    def get_backend(self, device: Any = None) -> Group:
        return self

    _get_backend = get_backend

    def _set_sequence_number_for_group(self) -> None:
        pass

    def _get_sequence_number_for_group(self) -> int:
        return 0

    def _start_coalescing(self, device: Any = None) -> None:
        """Operations are fused by the conductor anyway."""

    def _end_coalescing(self, *_: Any) -> Work:
        return Done(self._home, "coalescing", [])

    def set_timeout(self, timeout: timedelta) -> None:
        self._limit = timeout.total_seconds()

    _set_default_timeout = set_timeout

    def shutdown(self) -> None:
        """The set is forgotten; operations still in flight keep it until the end of the job."""
        if self._set and core.is_initialised() and core.generation() == self._generation:
            library().remove_set(self._set)
        self._set = 0

    abort = shutdown

    def _start(
        self,
        name: str,
        request: _abi.Request,
        result: Sequence[Any],
        opts: Any = None,
        finish: Finish | None = None,
        keep: Any = None,
    ) -> Work:
        """One operation as a work. The request says what; the group adds its set and its queue."""
        self._check_usable(name)
        home = self._home
        if opts is not None and not getattr(opts, "asyncOp", True):
            # The caller waits at once, so nothing has to be kept.
            request.set = self._set
            request.flags = ORDERED_WAITING
            run(home, name, request, self._limit_of(opts), finish, (result, keep))
            return self._done
        work = Work(home, name, result, self._limit_of(opts), finish, keep)
        return self._launch(work, request)

    def _launch(self, work: Work, request: _abi.Request, flags: int = ORDERED) -> Work:
        home = self._home
        request.set = self._set
        request.flags = flags
        request.queue = home.queue
        work._tag = request.queue_tag = next(home.tags)
        work._start(ctypes.byref(request), 1)
        home.started_one()
        return work

    def _check_usable(self, name: str) -> None:
        if self._set == 0:
            raise errors.NotInitialised(f"{name}: this process group has been destroyed")

    def _start_all(
        self,
        name: str,
        requests: list[_abi.Request],
        result: Sequence[Any],
        opts: Any,
        finish: Finish | None,
        keep: Any,
    ) -> Work:
        """Several operations as one work."""
        self._check_usable(name)
        home = self._home
        if not requests:
            return Done(home, name, result)
        work = Work(home, name, result, self._limit_of(opts), finish, keep)
        work._tag = next(home.tags)
        for request in requests:
            request.set = self._set
            request.flags = ORDERED
            request.queue = home.queue
            request.queue_tag = work._tag
        array = (_abi.Request * len(requests))(*requests)
        work._start(array, len(requests))
        home.started_one()
        return work

    def _limit_of(self, opts: Any) -> float:
        if opts is None:
            return self._limit
        timeout = getattr(opts, "timeout", None)  # `opts` may be a bare ReduceOp
        seconds = 0 if timeout is None else timeout.total_seconds()
        return seconds if seconds > 0 else self._limit

    def _root(self, opts: Any) -> int:
        root = opts.rootRank
        if not 0 <= root < self._members:
            raise errors.InvalidArgument(
                f"there is no rank {root} in this group of {self._members}"
            )
        return self._ranks[root]

    def _check_list(
        self, tensors: Sequence[Any], what: str, like: torch.Tensor | None = None
    ) -> None:
        if len(tensors) != self._members:
            raise errors.InvalidArgument(
                f"{what}: a list of {len(tensors)} tensors for a group of {self._members} ranks"
            )
        if like is None:
            return
        memory.check_same(tensors, like, what)
        for each in tensors:
            if each.numel() != like.numel():
                raise errors.InvalidArgument(
                    f"{what}: an output has {each.numel()} elements, the input {like.numel()}"
                )
