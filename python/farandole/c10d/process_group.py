"""The process group: every collective that torch.distributed knows, over a process set of its own.

A set of its own, so that what a script does with Farandole beside torch.distributed never gets
into the order of its calls. Python calls these methods directly; C++ (DDP's reducer, functional
collectives) reaches those that the installed version of PyTorch forwards to Python.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from .. import _abi
from ..requests import make
from .exchange import Exchange
from .gathering import Gathering
from .monitored_barrier import monitored_barrier
from .reductions import Reductions
from .rooted import Rooted
from .work import Work


class ProcessGroup(Reductions, Rooted, Gathering, Exchange):
    """Made by torch.distributed.init_process_group("farandole") and new_group()."""

    def barrier(self, opts: Any = None, timeout: Any = None) -> Work:
        return self._start(
            "barrier",
            make(
                _abi.BARRIER,
            ),
            [],
            opts,
        )

    def monitored_barrier(
        self, timeout: timedelta | None = None, wait_all_ranks: bool = False
    ) -> None:
        seconds = self._limit if timeout is None else timeout.total_seconds()
        monitored_barrier(self, seconds, wait_all_ranks)
