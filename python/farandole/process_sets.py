"""Process sets: some of the ranks, with operations of their own."""

from __future__ import annotations

from typing import Iterable, Union


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
            from . import core

            core.require_initialised()
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
        from . import core

        mine = core.rank()
        return (self.ranks or []).index(mine) if self.included() else -1

    def included(self) -> bool:
        self._require()
        from . import core

        return core.rank() in (self.ranks or [])

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


class _World(ProcessSet):
    """All ranks; its list of them is known from init() on."""

    def __init__(self) -> None:
        self.ranks = None
        self.process_set_id = 0
        self.mpi_comm = None

    def _require(self) -> int:
        from . import core

        core.require_initialised()
        return 0


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
