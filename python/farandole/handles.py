"""Handles: operations in flight.

The buffers of an operation stay alive until it is done, even if its Handle is dropped. Waiting
releases the interpreter lock and lets signals through: Ctrl-C works.
"""

from __future__ import annotations

import collections
import os
import time
from ctypes import byref, c_int32, c_uint64
from typing import Callable, NamedTuple, Sequence

from . import _abi
from ._library import check, exception_of, last_error, library, result_of
from .errors import Error, Timeout
from .requests import Request

# A signal that another thread of the process took is handled after this time at the latest.
_SLICE_MS = 200

_forked = False
# Operations in flight whose Handle is gone: (id, buffers).
_orphans: collections.deque[tuple[int, object]] = collections.deque()


def _after_fork() -> None:
    global _forked
    _forked = True


os.register_at_fork(after_in_child=_after_fork)


def forked() -> bool:
    """Whether this process was forked from one that had loaded this module."""
    return _forked


class Result(NamedTuple):
    """The result of an operation; `address` is valid as long as its Handle is kept."""

    address: int
    nbytes: int
    shape: tuple[int, ...]
    splits: tuple[int, ...]  # rows received from each member
    last_joined: int
    source: int


class Handle:
    """An operation in flight. Made by the functions of `farandole.core`."""

    __slots__ = ("__weakref__", "_code", "_keep", "_name", "id")

    def __init__(self, number: int, keep: object = None, name: str | None = None) -> None:
        self.id = number
        self._name = name
        self._keep = keep
        self._code: int | None = None  # once done

    def wait(self, timeout: float | None = None) -> None:
        """Waits until done; raises the operation's error, or Timeout after `timeout` seconds."""
        if self._code is None:
            self._wait(timeout)
        if self._code != _abi.OK:
            raise self._failure()

    def _wait(self, timeout: float | None) -> None:
        wait = library().wait
        end = None if timeout is None else time.monotonic() + timeout
        limit = _SLICE_MS
        while True:
            if end is not None:
                limit = min(_SLICE_MS, int(max(0.0, end - time.monotonic()) * 1000 + 0.999))
            # TIMEOUT ends a slice, INTERRUPTED lets Python run its signal handlers here.
            code = wait(self.id, limit)
            if code == _abi.OK:
                self._code = _abi.OK
                self._keep = None
                return
            if self.done():
                return
            if code != _abi.TIMEOUT and code != _abi.INTERRUPTED:
                raise last_error(code)  # a fork child, a concurrent shutdown
            if end is not None and time.monotonic() >= end:
                name = self.name
                raise Timeout(f"'{name}' is not done after {timeout} s", tensor=name)

    def done(self) -> bool:
        """Whether wait() would return at once. Also makes a little progress on pending work."""
        if self._code is not None:
            return True
        flag = c_int32()
        check(library().test(self.id, byref(flag)))
        if not flag.value:
            return False
        self._code = result_of(self.id).code
        self._keep = None
        return True

    @property
    def name(self) -> str:
        """What the operation is called in messages; "operation" where it has no name."""
        return self._name or "operation"

    def exception(self) -> Error | None:
        """The error of a failed operation; None if it succeeded or is in flight."""
        if not self.done() or self._code == _abi.OK:
            return None
        return self._failure()

    def _failure(self) -> Error:
        info = result_of(self.id)
        return exception_of(info.error, info.code)

    def result(self) -> Result:
        """Waits for the operation and returns its result."""
        self.wait()
        info = result_of(self.id)
        return Result(
            info.data or 0,
            info.bytes,
            tuple(info.shape[: info.ndim]) if info.ndim else (),
            tuple(info.splits[: info.nsplits]) if info.nsplits else (),
            info.last_joined,
            info.source,
        )

    def cancel(self) -> bool:
        """Withdraws the operation if no other rank executes it yet; returns whether it did."""
        if self.done():
            return False
        code = library().cancel(self.id)
        if code == _abi.OK:
            return True
        if code != _abi.UNAVAILABLE:  # "it is running or done" is an answer, not an error
            raise last_error(code)
        return False

    def __del__(self) -> None:
        try:
            if _forked:
                return
            if self._code is None and not self.done():
                _orphans.append((self.id, self._keep))
                return
            library().release(self.id)
        except Exception:  # the interpreter may be half gone
            pass


def _sweep() -> None:
    """Releases the buffers of orphans that are done. Others may be added at any moment."""
    found = library()
    flag = c_int32()
    for _ in range(len(_orphans)):
        try:
            number, keep = _orphans.popleft()
        except IndexError:  # another thread does the same
            return
        if found.test(number, byref(flag)) == _abi.OK and not flag.value:
            _orphans.append((number, keep))
        else:
            found.release(number)


def handles_in_flight() -> int:
    """The number of operations in flight whose Handle is gone."""
    if _orphans:
        _sweep()
    return len(_orphans)


def submit(request: Request, notify: Callable[[Handle], None] | None = None) -> Handle:
    """Starts one operation.

    notify(handle) is called on a Python thread of Farandole's own once the operation is done.
    """
    if _orphans:
        _sweep()
    if notify is not None:
        from .completions import Completions

        return Completions.here().start(request, notify)
    number = c_uint64()
    code = library().submit(byref(request.raw), 1, byref(number))
    if code != _abi.OK:
        raise last_error(code)
    return Handle(number.value, request.keep, request.name)


_groups = 0


def submit_group(requests: Sequence[Request]) -> list[Handle]:
    """Starts several operations of one process set that run together or not at all."""
    global _groups
    if _orphans:
        _sweep()
    if not requests:
        return []
    _groups += 1
    array = (_abi.Request * len(requests))(*[request.raw for request in requests])
    for raw in array:
        raw.group = _groups
    numbers = (c_uint64 * len(requests))()
    code = library().submit(array, len(requests), numbers)
    if code != _abi.OK:
        raise last_error(code)
    return [
        Handle(number, request.keep, request.name) for number, request in zip(numbers, requests)
    ]
