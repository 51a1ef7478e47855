"""Where started operations end: one completion queue per process, and a thread that serves futures.

Works that somebody waits for need no thread: the waiting thread itself drives them. Only a future
must be completed by somebody else. The thread sleeps unless futures are outstanding, so that a
plain sequence of blocking calls never wakes it.

Started works are kept here until they are done: the engine writes into their tensors. Older
versions of PyTorch drop the Python half of a Work that C++ holds, and C++ then waits for ever; so
the last works that nobody has waited for yet are kept, too.
"""

from __future__ import annotations

import atexit
import collections
import ctypes
import itertools
import os
import select
import threading
from typing import TYPE_CHECKING, Any

from .. import _abi
from .buckets import Buckets
from .late import Late

if TYPE_CHECKING:
    from .work import Work

_BATCH = 64
# More than one only if callbacks of futures wait for other futures.
_MOST_THREADS = 8


class Completions:
    """May be used from any thread. Belongs to one process: a forked child makes its own."""

    def __init__(self) -> None:
        self.library = _abi.library()
        # Without giving up the interpreter's lock: these never wait for anything.
        quick = ctypes.PyDLL(self.library.path)
        self.submit = quick.farandole_submit
        self.submit.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p]
        self.release = quick.farandole_release
        self.release.argtypes = [ctypes.c_uint64]
        self._pop = quick.farandole_queue_pop
        self._pop.restype = ctypes.c_size_t
        self._pop.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t]

        queue = ctypes.c_void_p()
        event = ctypes.c_int32(-1)
        _abi.check(self.library.queue_create(ctypes.byref(queue), ctypes.byref(event)))
        self.queue: int | None = queue.value
        self._event = event.value
        self.pid = os.getpid()
        self.tags = itertools.count(1)
        self.started: dict[int, Work] = {}
        self.unclaimed: collections.deque[Work] = collections.deque(maxlen=_BATCH)
        # Operations that somebody stopped waiting for, and their memory: kept to the end.
        self.abandoned: list[tuple[int, Any]] = []
        self.buckets = Buckets()
        self.late = Late()
        self._submissions = 0
        self._batch = (_abi.Completion * _BATCH)()
        self._batch_lock = threading.Lock()
        self._futures = 0
        self._changed = threading.Condition()
        self._threads: list[threading.Thread] = []
        self._leader = 0  # the thread that serves
        self._idle = 0
        self._ending = False

    def started_one(self) -> None:
        """After every submission: keeps the queue and the list of started works short."""
        self._submissions += 1
        if self._futures == 0 and (len(self.started) > 1 or self._submissions % 256 == 0):
            self.drain()

    def drain(self) -> None:
        """Hands out what has been completed."""
        if not self._batch_lock.acquire(False):
            return
        arrived = []
        try:
            while True:
                count = self._pop(self.queue, self._batch, _BATCH)
                for i in range(count):
                    one = self._batch[i]
                    arrived.append((one.tag, one.code))
                if count < _BATCH:
                    break
        finally:
            self._batch_lock.release()
        for tag, code in arrived:
            work = self.started.get(tag)
            if work is not None:
                work._arrived(code)

    # ---- Futures.

    def future_wanted(self) -> None:
        """A work has a future that only a thread of ours can complete."""
        with self._changed:
            self._futures += 1
            if self._leader == threading.get_ident():
                # From a callback of another future, which may wait for this one: another serves.
                self._leader = 0
            if self._leader == 0 and self._idle == 0 and len(self._threads) < _MOST_THREADS:
                if not self._ending:
                    thread = threading.Thread(
                        target=self._serve, name="farandole-futures", daemon=True
                    )
                    self._threads.append(thread)
                    thread.start()
            self._changed.notify()

    def future_done(self) -> None:
        with self._changed:
            self._futures -= 1

    def _lead(self, me: int) -> bool:
        """Waits until this thread has to serve; false at the end of the process."""
        with self._changed:
            while not self._ending and (self._futures == 0 or self._leader not in (0, me)):
                if self._leader == me:
                    self._leader = 0
                self._idle += 1
                self._changed.wait()
                self._idle -= 1
            self._leader = me
            return not self._ending

    def _serve(self) -> None:
        me = threading.get_ident()
        poll = select.poll()
        poll.register(self._event, select.POLLIN)
        while self._lead(me):
            # The limit is for the end of the process; completions wake it at once.
            if poll.poll(500):
                self.drain()

    def end(self) -> None:
        """No thread of ours enters an interpreter that is being taken down."""
        with self._changed:
            self._ending = True
            self._changed.notify_all()
        if self.pid == os.getpid():
            self.late.end()
            for thread in self._threads:
                thread.join(1)


_instance: Completions | None = None
_lock = threading.Lock()


def completions() -> Completions:
    """This process's."""
    global _instance, _lock
    found = _instance
    if found is None or found.pid != os.getpid():
        with _lock:
            if _instance is None or _instance.pid != os.getpid():
                _instance = Completions()
                atexit.register(_instance.end)
            found = _instance
    return found
