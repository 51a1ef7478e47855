"""Handles: operations in flight.

A Handle keeps the buffers of its operation alive until that is done, even if the Handle is dropped.
Waiting releases the interpreter's lock and lets signals through: Ctrl-C works.
"""

from __future__ import annotations

import collections
import ctypes
import os
import time
from ctypes import byref, c_int32, c_int64, c_uint64
from typing import Any, Callable, NamedTuple, Sequence

from . import _abi
from .errors import Error, Timeout

# A signal that another thread of the process took is seen at the latest after this time.
_SLICE_MS = 200

_forked = False
# Operations whose Handle is gone while they go on: (id, buffers).
_orphans: collections.deque[tuple[int, Any]] = collections.deque()


def _after_fork() -> None:
    global _forked
    _forked = True


os.register_at_fork(after_in_child=_after_fork)


def forked() -> bool:
    """Whether this process was forked from one that had loaded this module."""
    return _forked


class Result(NamedTuple):
    """What an operation left: `address` is valid as long as its Handle is kept."""

    address: int
    nbytes: int
    shape: tuple[int, ...]
    splits: tuple[int, ...]  # rows received from each member
    last_joined: int
    source: int


class Handle:
    """An operation in flight. Made by the functions of `farandole.core`."""

    __slots__ = ("__weakref__", "_code", "_keep", "_name", "id")

    def __init__(self, number: int, keep: Any = None, name: str | None = None) -> None:
        self.id = number
        self._name = name
        self._keep = keep
        self._code: int | None = None  # once done

    def wait(self, timeout: float | None = None) -> None:
        """Until the operation is done; raises its error, or Timeout after so many seconds."""
        if self._code is None:
            self._wait(timeout)
        if self._code != _abi.OK:
            raise self.exception()  # type: ignore[misc]

    def _wait(self, timeout: float | None) -> None:
        wait = _abi.library().wait
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
                raise _abi.last_error(code)  # a fork child, a shutdown under way
            if end is not None and time.monotonic() >= end:
                name = self.name
                raise Timeout(f"'{name}' is not done after {timeout} s", tensor=name)

    def done(self) -> bool:
        """Whether wait() would return at once. Drives pending work a little."""
        if self._code is not None:
            return True
        flag = c_int32()
        _abi.check(_abi.library().test(self.id, byref(flag)))
        if not flag.value:
            return False
        self._code = self._info().code
        self._keep = None
        return True

    @property
    def name(self) -> str:
        """What the operation is called in messages; "operation" where it has no name."""
        return self._name or "operation"

    def _info(self) -> _abi.ResultInfo:
        info = _abi.ResultInfo(ctypes.sizeof(_abi.ResultInfo))
        _abi.check(_abi.library().get_result(self.id, byref(info)))
        return info

    def exception(self) -> Error | None:
        """The error of an operation that is done; None if it succeeded or goes on."""
        if not self.done() or self._code == _abi.OK:
            return None
        return self._info().error.exception(self._code or 0)

    def result(self) -> Result:
        """What the operation left. Waits for it."""
        self.wait()
        info = self._info()
        return Result(
            info.data or 0,
            info.bytes,
            tuple(info.shape[: info.ndim]) if info.ndim else (),
            tuple(info.splits[: info.nsplits]) if info.nsplits else (),
            info.last_joined,
            info.source,
        )

    def cancel(self) -> bool:
        """Withdraws the operation if no other rank has begun with it; whether that was possible."""
        if self.done():
            return False
        code = _abi.library().cancel(self.id)
        if code == _abi.OK:
            return True
        if code != 10:  # "it is running or done" is an answer, not an error
            raise _abi.last_error(code)
        return False

    def __del__(self) -> None:
        try:
            if _forked:
                return
            if self._code is None and not self.done():
                _orphans.append((self.id, self._keep))
                return
            _abi.library().release(self.id)
        except Exception:  # the interpreter may be half gone
            pass


def _sweep() -> None:
    """Lets go of the buffers of orphans that are done. Others may be added at any moment."""
    library = _abi.library()
    flag = c_int32()
    for _ in range(len(_orphans)):
        try:
            number, keep = _orphans.popleft()
        except IndexError:  # another thread does the same
            return
        if library.test(number, byref(flag)) == _abi.OK and not flag.value:
            _orphans.append((number, keep))
        else:
            library.release(number)


def handles_in_flight() -> int:
    """Operations that go on although their Handle is gone."""
    if _orphans:
        _sweep()
    return len(_orphans)


class Request:
    """One operation to be: what `farandole_request` has, and the buffers to keep alive."""

    __slots__ = ("keep", "name", "raw")

    def __init__(
        self,
        operation: int,
        *,
        input: int = 0,
        output: int = 0,
        output_bytes: int = _abi.BYTES_UNKNOWN,
        shape: Sequence[int] = (),
        dtype: int = 0,
        op: int = 0,
        root: int = 0,
        set: int = 0,
        tag: int = 0,
        name: str | None = None,
        splits: Sequence[int] | None = None,
        prescale: float = 1.0,
        postscale: float = 1.0,
        group: int = 0,
        will_wait: bool = False,
        keep: Any = None,
    ) -> None:
        ndim = len(shape)
        sizes = (c_int64 * ndim)(*shape)
        nsplits = 0 if splits is None else len(splits)
        parts = (c_int64 * nsplits)(*splits) if splits is not None else None
        self.raw = _abi.Request(
            ctypes.sizeof(_abi.Request),
            operation,
            dtype,
            op,
            root,
            set,
            _abi.FLAG_WILL_WAIT if will_wait else 0,
            tag,
            None if name is None else name.encode(),
            input,
            output,
            sizes,
            ndim,
            nsplits,
            parts,
            prescale,
            postscale,
            group,
            output_bytes=output_bytes,
        )
        self.keep = keep
        self.name = name


def submit(request: Request, notify: Callable[[Handle], None] | None = None) -> Handle:
    """Starts one operation.

    notify(handle) is called on a Python thread of Farandole's own once the operation is done.
    """
    if _orphans:
        _sweep()
    number = c_uint64()
    if notify is not None:
        from .completions import completions

        return completions().submit(request, notify)
    code = _abi.library().submit(byref(request.raw), 1, byref(number))
    if code:
        raise _abi.last_error(code)
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
    code = _abi.library().submit(array, len(requests), numbers)
    if code:
        raise _abi.last_error(code)
    return [
        Handle(number, request.keep, request.name) for number, request in zip(numbers, requests)
    ]
