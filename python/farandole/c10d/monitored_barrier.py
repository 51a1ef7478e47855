"""A barrier that names the missing ranks: all report to the first rank, which answers."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import torch

from .. import errors

if TYPE_CHECKING:
    from .process_group import ProcessGroup

# Above the tags that scripts use.
_HERE = (1 << 30) + 1
_GO = (1 << 30) + 2


def _wait(work: object, seconds: float) -> bool:
    from datetime import timedelta

    try:
        work.wait(timedelta(seconds=max(0.001, seconds)))  # type: ignore[attr-defined]
        return True
    except errors.Timeout:
        return False


def monitored_barrier(group: ProcessGroup, seconds: float, wait_all_ranks: bool) -> None:
    """Raises, on every rank that came, naming those that did not (the first one, or all)."""
    end = time.monotonic() + seconds
    if group.rank() != 0:
        _wait(group.send([torch.zeros(1)], 0, _HERE), seconds)
        answer = torch.zeros(1)
        # The first rank may begin as late as the others; it answers within its own time.
        if not _wait(group.recv([answer], 0, _GO), seconds + 1):
            raise errors.Timeout(
                f"monitored_barrier: rank {group._ranks[0]} has not answered rank "
                f"{group._ranks[group.rank()]} within {seconds:g} s"
            )
        if answer.item() != 1:
            raise errors.Timeout(
                f"monitored_barrier: not all ranks came within {seconds:g} s; rank "
                f"{group._ranks[0]} names them"
            )
        return
    others = range(1, group.size())
    works = {rank: group.recv([torch.zeros(1)], rank, _HERE) for rank in others}
    missing: list[int] = []
    for rank, work in works.items():
        if not _wait(work, end - time.monotonic()):
            missing.append(rank)
            if not wait_all_ranks:
                break
    answer = torch.full((1,), 0.0 if missing else 1.0)
    answers = [group.send([answer], rank, _GO) for rank in others if rank not in missing]
    for work in answers:
        _wait(work, 1 + max(0.0, end - time.monotonic()))
    if missing:
        names = ", ".join(str(group._ranks[rank]) for rank in missing)
        raise errors.Timeout(
            f"monitored_barrier: rank(s) {names} did not come within {seconds:g} s", missing[0]
        )
