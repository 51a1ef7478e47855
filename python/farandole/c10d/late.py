"""Futures of works that backward() should drive to their end, in case it does not.

That is so in the first step with DDP's static_graph, where DDP waits before it could; and after an
exception. No thread is woken for a work: while there are any, one checks periodically.
"""

from __future__ import annotations

import collections
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .work import Work

_LOOK_SECONDS = 0.05


class Late:
    """May be used from any thread."""

    def __init__(self) -> None:
        self._works: collections.deque[Work] = collections.deque()
        self._some = threading.Event()
        self._ending = threading.Event()
        self._thread: threading.Thread | None = None

    def watch(self, work: Work) -> None:
        """Has the work's future served if it is not complete after a while."""
        self._works.append(work)
        if self._some.is_set():
            return
        self._some.set()
        if self._thread is None:
            self._thread = threading.Thread(target=self._look, name="farandole-late", daemon=True)
            self._thread.start()

    def _look(self) -> None:
        while True:
            self._some.wait()
            count = len(self._works)
            if self._ending.wait(_LOOK_SECONDS):
                return
            if not self._works:
                self._some.clear()
                if self._works:  # one came just now
                    self._some.set()
            # What was there before the wait has had its time.
            for _ in range(min(count, len(self._works))):
                self._works.popleft()._serve()

    def end(self) -> None:
        self._ending.set()
        self._some.set()
        if self._thread is not None:
            self._thread.join(1)
