"""Completions told to Python: one daemon thread sleeps on the queue's event and calls functions.

No thread of the library ever enters the interpreter.
"""

from __future__ import annotations

import os
import select
import sys
import threading
from ctypes import byref, c_int32, c_uint64, c_void_p
from typing import Callable

from . import _abi
from .handles import Handle, Request

_BATCH = 64


class Completions:
    """A completion queue and the thread that empties it."""

    def __init__(self) -> None:
        self._queue = c_void_p()
        event = c_int32()
        _abi.check(_abi.library().queue_create(byref(self._queue), byref(event)))
        self._event = event.value
        self._lock = threading.Lock()
        self._tag = 0
        self._waiting: dict[int, tuple[Handle | None, Callable[[Handle], None]]] = {}
        thread = threading.Thread(target=self._serve, name="farandole-completions", daemon=True)
        thread.start()

    def submit(self, request: Request, notify: Callable[[Handle], None]) -> Handle:
        # The lock is held until the handle is known: the operation may be done before.
        with self._lock:
            self._tag += 1
            tag = self._tag
            request.raw.queue = self._queue
            request.raw.queue_tag = tag
            number = c_uint64()
            code = _abi.library().submit(byref(request.raw), 1, byref(number))
            if code:
                raise _abi.last_error(code)
            handle = Handle(number.value, request.keep, request.name)
            self._waiting[tag] = (handle, notify)
            return handle

    def _serve(self) -> None:
        ready = select.poll()
        ready.register(self._event, select.POLLIN)
        batch = (_abi.Completion * _BATCH)()
        while True:
            ready.poll()
            count = _abi.library().queue_pop(self._queue, batch, _BATCH)
            for completion in batch[:count]:
                with self._lock:
                    handle, notify = self._waiting.pop(completion.tag, (None, None))
                if handle is None:
                    continue
                try:
                    notify(handle)
                except Exception:
                    sys.excepthook(*sys.exc_info())  # type: ignore[arg-type]
                handle = notify = None


_completions: Completions | None = None
_making = threading.Lock()


def completions() -> Completions:
    """The process's one; a fork child, which has no thread, would get a new one."""
    global _completions
    with _making:
        if _completions is None:
            _completions = Completions()
        return _completions


def _after_fork() -> None:
    global _completions, _making
    _completions = None
    _making = threading.Lock()


os.register_at_fork(after_in_child=_after_fork)
