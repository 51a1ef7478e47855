"""Process sets."""

from __future__ import annotations

from farandole.basics import add_process_set  # noqa: F401
from farandole.core import get_process_sets, remove_process_set  # noqa: F401
from farandole.process_sets import ProcessSet, global_process_set  # noqa: F401


def get_process_set_ids_and_ranks() -> dict[int, list[int]]:
    return {number: list(each.ranks or []) for number, each in get_process_sets().items()}
