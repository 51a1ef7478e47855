"""Completions in Python: a queue of the library, and Python threads that empty it.

No thread of the library ever enters the interpreter. A thread that waits for an operation drives it
and needs no other; a thread serves the queue only while something must happen that no thread waits
for: a function is to be called (`notify=`), a future of torch.distributed is to be completed.
"""

from __future__ import annotations

import atexit
import itertools
import os
import select
import sys
import threading
from ctypes import byref, c_int32, c_uint64, c_void_p
from typing import Callable, ClassVar, Protocol, TypeVar

from . import _abi
from ._library import check, last_error, library, quick_library
from .handles import Handle
from .requests import Request

_BATCH = 64

_Kind = TypeVar("_Kind", bound="Completions")


class Waiter(Protocol):
    """An object that has started operations with a tag of the queue."""

    def _arrived(self, code: int) -> None:
        """One of them is done."""


class Completions:
    """A completion queue, the waiters for its completions, and the threads that serve it.

    May be used from any thread. Belongs to one process: here() gives a fork child its own.
    """

    # More than one helps if callbacks wait for other callbacks.
    most_threads = 1

    _instances: ClassVar[dict[type, Completions]] = {}
    _making = threading.Lock()

    @classmethod
    def here(cls: type[_Kind]) -> _Kind:
        """The object of this class for this process."""
        with Completions._making:
            found = Completions._instances.get(cls)
            if not isinstance(found, cls):
                found = Completions._instances[cls] = cls()
                atexit.register(found.end)
            return found

    def __init__(self) -> None:
        queue = c_void_p()
        event = c_int32(-1)
        check(library().queue_create(byref(queue), byref(event)))
        self.queue = queue.value
        self._event = event.value
        self._pop = quick_library().queue_pop
        self._batch = (_abi.Completion * _BATCH)()
        self._batch_lock = threading.Lock()
        self.tags = itertools.count(1)
        self.started: dict[int, Waiter] = {}  # by the tag of their requests
        self._pid = os.getpid()
        self._changed = threading.Condition()
        # Guarded by _changed.
        self._wanted = 0
        self._threads: list[threading.Thread] = []
        self._leader = 0  # the thread that serves
        self._idle = 0
        self._ending = False
        self._bell: tuple[int, int] | None = None  # a pipe: wakes the leader at the end

    def start(self, request: Request, notify: Callable[[Handle], None]) -> Handle:
        """Starts one operation; notify(handle) is called on a thread of ours when it is done."""
        told = _Told(self, next(self.tags), notify)
        request.raw.queue = self.queue
        request.raw.queue_tag = told.tag
        number = c_uint64()
        self.wanted()
        # The lock is held until the handle is known: the operation may be done before.
        with told.lock:
            self.started[told.tag] = told
            code = library().submit(byref(request.raw), 1, byref(number))
            if code != _abi.OK:
                del self.started[told.tag]
                self.unwanted()
                raise last_error(code)
            told.handle = Handle(number.value, request.keep, request.name)
            return told.handle

    def drain(self) -> None:
        """Delivers the completions of the queue."""
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
            waiter = self.started.get(tag)
            if waiter is not None:
                waiter._arrived(code)

    # ---- Threads

    def wanted(self) -> None:
        """From now on, and until unwanted() has been called as often, a thread serves the queue."""
        with self._changed:
            self._wanted += 1
            if self._leader == threading.get_ident():
                # Called by a callback, which may wait for this one: another thread serves.
                self._leader = 0
            if self._leader == 0 and self._idle == 0 and not self._ending:
                self._add_thread()
            self._changed.notify()

    def unwanted(self) -> None:
        with self._changed:
            self._wanted -= 1

    def _add_thread(self) -> None:
        if len(self._threads) >= self.most_threads:
            return
        if self._bell is None:
            self._bell = os.pipe()
        thread = threading.Thread(target=self._serve, name="farandole-completions", daemon=True)
        self._threads.append(thread)
        thread.start()

    def _lead(self, me: int) -> bool:
        """Waits until this thread has to serve; false at the end of the process."""
        with self._changed:
            while not self._ending and (self._wanted == 0 or self._leader not in (0, me)):
                if self._leader == me:
                    self._leader = 0
                self._idle += 1
                self._changed.wait()
                self._idle -= 1
            self._leader = me
            return not self._ending

    def _serve(self) -> None:
        assert self._bell is not None
        poll = select.poll()
        poll.register(self._event, select.POLLIN)
        poll.register(self._bell[0], select.POLLIN)
        while self._lead(threading.get_ident()):
            poll.poll()
            self.drain()

    def end(self) -> None:
        """No thread of ours enters an interpreter that is being taken down."""
        if self._pid != os.getpid():
            return
        with self._changed:
            self._ending = True
            self._changed.notify_all()
            if self._bell is not None:
                os.write(self._bell[1], b"\0")
        for thread in self._threads:
            thread.join(1)


class _Told:
    """An operation whose completion is reported to a function."""

    def __init__(self, home: Completions, tag: int, notify: Callable[[Handle], None]) -> None:
        self.tag = tag
        self.lock = threading.Lock()
        self.handle: Handle | None = None
        self._home = home
        self._notify = notify

    def _arrived(self, code: int) -> None:
        with self.lock:
            handle = self.handle
        assert handle is not None
        self._home.started.pop(self.tag, None)
        try:
            self._notify(handle)
        except Exception:
            kind, error, trace = sys.exc_info()
            assert kind is not None and error is not None
            sys.excepthook(kind, error, trace)
        finally:
            self._home.unwanted()


def _after_fork() -> None:
    Completions._instances.clear()
    Completions._making = threading.Lock()


os.register_at_fork(after_in_child=_after_fork)
