"""Where the works of torch.distributed are at home: their queue, and what must outlive them.

Works that a thread waits for need no other: the waiting thread itself drives them. Only a future
must be completed by another thread (`wanted`), so that a plain sequence of blocking calls never
wakes a thread.

Started works are kept here until they are done: the engine writes into their tensors. Older
versions of PyTorch drop the Python half of a Work that C++ holds, and C++ then waits forever; so
the last works that have not been waited for are kept, too.
"""

from __future__ import annotations

import collections
import os
from typing import TYPE_CHECKING, Any

from .._library import library, quick_library
from ..completions import Completions
from .buckets import Buckets
from .late import Late

if TYPE_CHECKING:
    from .work import Work

_MOST_UNCLAIMED = 64
# Blocking calls leave their completions in the queue; they are taken out now and then.
_DRAIN_EVERY = 256


class Home(Completions):
    """One per process: Home.here(). `started` has the works by their tags."""

    # Callbacks of futures may wait for other futures.
    most_threads = 8

    def __init__(self) -> None:
        super().__init__()
        self.library = library()
        self.submit = quick_library().submit
        self.release = quick_library().release
        self.unclaimed: collections.deque[Work] = collections.deque(maxlen=_MOST_UNCLAIMED)
        # Operations whose waiter gave up, and their memory: kept to the end.
        self.abandoned: list[tuple[int, Any]] = []
        self.buckets = Buckets()
        self.late = Late()
        self._submissions = 0

    def started_one(self) -> None:
        """After every submission: keeps the queue and the list of started works short."""
        self._submissions += 1
        if self._wanted == 0 and (len(self.started) > 1 or self._submissions % _DRAIN_EVERY == 0):
            self.drain()

    def end(self) -> None:
        super().end()
        if self._pid == os.getpid():
            self.late.end()
