"""Process sets: some of the ranks, with operations of their own."""

from __future__ import annotations

from ctypes import byref, c_int32
from typing import Iterable, Sequence, Union

from . import world
from ._library import check, library
from .errors import InvalidArgument


class ProcessSet:
    """Ranks of the world. Usable once it has been given to init() or add_process_set()."""

    def __init__(self, ranks: Iterable[int]) -> None:
        members = list(ranks)
        if not all(isinstance(rank, int) for rank in members):
            raise TypeError(
                f"a process set is made of ranks, not of {members!r}: communicators of MPI are not "
                "used here"
            )
        if not members:
            raise ValueError("a process set needs at least one rank")
        if len(set(members)) != len(members):
            raise ValueError(f"a rank is named twice in {members}")
        if min(members) < 0:
            raise ValueError(f"ranks are not negative: {members}")
        self.ranks: list[int] | None = sorted(members)
        self.process_set_id: int | None = None
        self.mpi_comm = None

    def _require(self) -> int:
        if self.process_set_id is None:
            world.require_initialised()
            raise ValueError(
                f"{self} has not been added: give it to init(process_sets=…) or add_process_set()"
            )
        return self.process_set_id

    def size(self) -> int:
        self._require()
        return len(self.ranks or [])

    def rank(self) -> int:
        """This process's place in the set; -1 if it is no member."""
        self._require()
        mine = world.rank()
        return (self.ranks or []).index(mine) if self.included() else -1

    def included(self) -> bool:
        self._require()
        return world.rank() in (self.ranks or [])

    def __str__(self) -> str:
        return f"ProcessSet(process_set_id={self.process_set_id}, ranks={self.ranks})"

    __repr__ = __str__

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, ProcessSet)
            and self.ranks == other.ranks
            and self.process_set_id == other.process_set_id
        )

    def __hash__(self) -> int:
        return id(self)


_WORLD = 0  # the world's number


class _World(ProcessSet):
    """All ranks; its list of them is known from init() on."""

    def __init__(self) -> None:
        self.ranks = None
        self.process_set_id = _WORLD
        self.mpi_comm = None

    def _require(self) -> int:
        world.require_initialised()
        return _WORLD


global_process_set = _World()

AnySet = Union[ProcessSet, int]


def set_id(process_set: AnySet) -> int:
    """The number the library knows a set by."""
    if isinstance(process_set, ProcessSet):
        number = process_set.process_set_id
        return process_set._require() if number is None else number
    if isinstance(process_set, int):
        return process_set
    raise TypeError(f"process_set must be a ProcessSet, not {type(process_set).__name__}")


# ---- The sets of this job, by their numbers.

_sets: dict[int, ProcessSet] = {}


def begin_sets(size: int) -> None:
    """A new job: there is only the world."""
    forget_sets()
    global_process_set.ranks = list(range(size))
    _sets[_WORLD] = global_process_set


def forget_sets() -> None:
    for each in _sets.values():
        if each is not global_process_set:
            each.process_set_id = None
    _sets.clear()
    global_process_set.ranks = None


def make_set(ranks: Sequence[int]) -> int:
    """The number of a new set of the library's own. Collective over its members."""
    number = c_int32()
    check(library().add_set((c_int32 * len(ranks))(*ranks), len(ranks), byref(number)))
    return number.value


def add_process_set(process_set: ProcessSet | Sequence[int]) -> ProcessSet:
    """Makes a set usable. All ranks must call it, in the same order; only the members wait.

    Several sets of the same ranks are possible: they progress independently.
    """
    identity = world.require_initialised()
    if not isinstance(process_set, ProcessSet):
        process_set = ProcessSet(process_set)
    if process_set.process_set_id is not None:
        raise InvalidArgument(f"{process_set} has been added already")
    ranks = process_set.ranks or []
    if ranks[-1] >= identity.size:
        raise InvalidArgument(f"there is no rank {ranks[-1]}: the job has {identity.size} ranks")
    number = make_set(ranks)
    process_set.process_set_id = number
    _sets[number] = process_set
    return process_set


def remove_process_set(process_set: AnySet) -> bool:
    """False if there is no such set, or if it is the world."""
    world.require_initialised()
    number = process_set if isinstance(process_set, int) else process_set.process_set_id
    if not number or number not in _sets:
        return False
    check(library().remove_set(number))
    _sets.pop(number).process_set_id = None
    return True


def get_process_sets() -> dict[int, ProcessSet]:
    """The sets by their numbers."""
    world.require_initialised()
    return dict(_sets)


def members(process_set: AnySet = _WORLD) -> list[int]:
    """The set's ranks, in their order."""
    world.require_initialised()
    number = set_id(process_set)
    found = _sets.get(number)
    if found is None:
        raise InvalidArgument(f"there is no process set {number}")
    return list(found.ranks or [])
