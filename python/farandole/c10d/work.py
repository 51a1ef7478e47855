"""Work: operations that were started together, as torch.distributed knows them."""

from __future__ import annotations

import contextlib
import ctypes
import threading
import time
from datetime import timedelta
from typing import Any, Callable, Sequence

import torch
from torch._C import _distributed_c10d as _c10d
from torch.autograd import Variable

from .. import _abi, errors
from .._library import Library, check, exception_of, last_error, result_of
from .home import Home

# How often a waiting thread checks its deadline, and signals that other threads took.
_LOOK_MS = 500
# At the end of backward(): far more than the rest of a reduction takes, unless a rank is late.
_DRIVE_MS = 1000


class Result:
    """The library's description of a finished operation; valid until the work is settled."""

    def __init__(self, handle: int) -> None:
        self.info = result_of(handle)

    @property
    def splits(self) -> list[int]:
        return [self.info.splits[i] for i in range(self.info.nsplits)]

    def bytes(self) -> torch.Tensor:
        """The library's own memory; to be copied before the work is settled."""
        if self.info.bytes == 0 or not self.info.data:
            return torch.empty(0, dtype=torch.uint8)
        memory = (ctypes.c_uint8 * self.info.bytes).from_address(self.info.data)
        return torch.frombuffer(memory, dtype=torch.uint8)


# What is left to do once all operations are done: copies from temporary memory.
Finish = Callable[[Callable[[int], Result]], None]


def await_handle(library: Library, handle: int, name: str, limit: float) -> int:
    """The operation's code, or Timeout after `limit` seconds. Signals are answered meanwhile."""
    code = library.wait(handle, _LOOK_MS if limit * 1000 > _LOOK_MS else int(limit * 1000) + 1)
    if code != _abi.TIMEOUT and code != _abi.INTERRUPTED:
        return code
    # Part of the limit has passed already.
    end = time.monotonic() + limit - (min(limit, _LOOK_MS / 1000) if code == _abi.TIMEOUT else 0)
    while True:
        left = end - time.monotonic()
        code = library.wait(handle, max(0, min(_LOOK_MS, int(left * 1000) + 1)))
        if code == _abi.INTERRUPTED or (code == _abi.TIMEOUT and left > 0):
            continue
        if code == _abi.TIMEOUT:
            raise errors.Timeout(
                f"{name} was not done within {limit:g} s: some rank of the group has not called "
                "it, or is much slower (timeout= of init_process_group and new_group is the limit)"
            )
        return code


def run(
    home: Home, name: str, request: Any, limit: float, finish: Finish | None, keep: Any
) -> None:
    """Starts one operation and waits for it, with nothing in between."""
    handles = (ctypes.c_uint64 * 1)()
    code = home.submit(ctypes.byref(request), 1, handles)
    if code != _abi.OK:
        raise last_error(code)
    handle = handles[0]
    try:
        code = await_handle(home.library, handle, name, limit)
    except BaseException:
        # It goes on: its memory belongs to it until it is done.
        home.abandoned.append((handle, keep))
        raise
    try:
        if code != _abi.OK:
            info = result_of(handle)
            raise exception_of(info.error, code) if info.code == code else last_error(code)
        if finish is not None:
            finish(lambda _: Result(handle))
    finally:
        home.release(handle)


class _Future(torch.futures.Future):
    """A thread that waits for it drives the operations itself."""

    def __init__(self, work: Work) -> None:
        super().__init__()
        self._work: Work | None = work

    def wait(self) -> Any:
        work = self._work
        if work is not None and not work._settled:
            work._wait(None)
        return super().wait()


class Work(_c10d.Work):
    """May be waited for from any thread, any number of times."""

    _left = 0
    _code = _abi.OK
    _tag = 0
    _settled = False
    _claimed = False  # it has been waited for, or has a future
    _error: BaseException | None = None
    _waiting = 0
    _future: _Future | None = None
    _driven = False  # at the end of backward()
    _served = False  # its future, by a thread
    _source = -1
    _handles: Sequence[int] = ()

    def __init__(
        self,
        home: Home,
        name: str,
        result: Sequence[Any],
        limit: float,
        finish: Finish | None = None,
        keep: Any = None,
    ) -> None:
        super().__init__()
        self._home = home
        self._name = name
        self._result = result
        self._limit = limit  # seconds, of the process group or of the call
        self._finish = finish
        self._keep = keep  # memory that the operations use
        self._lock = threading.RLock()

    # ---- What the process group and the completion queue call.

    def _start(self, requests: Any, count: int) -> Work:
        """Starts the requests, all or none; each already names the queue and this work's tag."""
        home = self._home
        handles = (ctypes.c_uint64 * count)()
        self._left = count
        # The queue may tell another thread of the end before the handles are known here.
        with self._lock:
            home.started[self._tag] = self
            code = home.submit(requests, count, handles)
            if code != _abi.OK:
                home.started.pop(self._tag, None)
                raise last_error(code)
            self._handles = handles[:]
        return self

    def _drive_after_backward(self) -> None:
        """DDP waits for its futures in C++, which drives nothing: two more threads would have to be
        woken. Its wait is the last thing in backward(); just before that, the thread drives."""
        try:
            Variable._execution_engine.queue_callback(self._drive)
        except RuntimeError:
            return  # not within backward()
        self._driven = True

    def _drive(self) -> None:
        self._home.buckets.end_of_backward()
        if self._settled:
            return
        with self._lock:
            self._waiting += 1
            handles = self._handles
        try:
            # Whatever takes longer, or fails, is left to the thread that serves futures.
            for handle in handles:
                if self._home.library.wait(handle, _DRIVE_MS) != _abi.OK:
                    return
            self._settle()
        finally:
            self._waited()

    def _arrived(self, code: int) -> None:
        """The queue reports that one of the operations is done."""
        with self._lock:
            self._left -= 1
            if code != _abi.OK and self._code == _abi.OK:
                self._code = code
            if self._left > 0 or self._settled:
                return
        self._settle()

    def _settle(self) -> None:
        """All operations are done: takes their results, frees them, completes the future."""
        with self._lock:
            if self._settled:
                return
            try:
                if self._code != _abi.OK:
                    self._error = self._failure()
                elif self._finish is not None:
                    self._finish(lambda i: Result(self._handles[i]))
            except BaseException as error:  # it belongs to those who wait
                self._error = error
            self._settled = True
            self._finish = self._keep = None
            self._home.started.pop(self._tag, None)
            if not self._claimed:
                self._home.unclaimed.append(self)
            if self._waiting == 0:
                self._free()
            future = self._future
            served = self._served
        if served:
            self._home.unwanted()
        if future is not None:
            self._complete(future)

    def _free(self) -> None:
        handles, self._handles = self._handles, ()
        for handle in handles:
            self._home.release(handle)

    def _failure(self) -> BaseException:
        for handle in self._handles:
            info = result_of(handle)
            if info.code not in (_abi.OK, _abi.TIMEOUT):
                return exception_of(info.error, info.code)
        return errors.make(self._code, f"{self._name} failed")

    def _complete(self, future: _Future) -> None:
        future._work = None
        if self._error is None:
            future.set_result(self._result)
        elif isinstance(self._error, Exception):
            future.set_exception(self._error)
        else:
            future.set_exception(RuntimeError(str(self._error)))

    # ---- What torch.distributed calls.

    def wait(self, timeout: timedelta | None = None) -> bool:
        self._claimed = True
        if not self._settled:
            self._wait(timeout)
        if self._error is not None:
            raise self._error
        return True

    def _wait(self, timeout: timedelta | None) -> None:
        limit = self._limit
        if timeout is not None and timeout.total_seconds() > 0:
            limit = timeout.total_seconds()
        with self._lock:
            if self._settled:
                return
            self._waiting += 1
            handles = self._handles
        try:
            for handle in handles:
                code = await_handle(self._home.library, handle, self._name, limit)
                if code != _abi.OK and self._code == _abi.OK:
                    self._code = code
            self._settle()
        finally:
            self._waited()

    def _waited(self) -> None:
        with self._lock:
            self._waiting -= 1
            if self._settled and self._waiting == 0:
                self._free()

    def is_completed(self) -> bool:
        if self._settled:
            return True
        done = ctypes.c_int32(0)
        with self._lock:
            for handle in self._handles:
                check(self._home.library.test(handle, ctypes.byref(done)))
                if not done.value:
                    return False
        if not self._settled:
            with contextlib.suppress(Exception):  # exception() has it
                self.wait()  # at once
        return True

    def is_success(self) -> bool:
        return self.is_completed() and self._error is None

    def exception(self) -> BaseException | None:
        return self._error

    def synchronize(self) -> None:
        self.wait()

    def block_current_stream(self) -> None:
        self.wait()

    def result(self) -> Any:
        self.wait()
        return self._result

    def source_rank(self) -> int:
        return self._source

    _source_rank = source_rank

    def get_future(self) -> torch.futures.Future:
        self._claimed = True
        with self._lock:
            if self._future is None:
                self._future = _Future(self)
                if self._settled:
                    self._complete(self._future)
                elif self._driven:
                    self._home.late.watch(self)
                else:
                    self._serve()
            return self._future

    def _serve(self) -> None:
        """Has a thread complete the future."""
        with self._lock:
            if not self._settled and not self._served:
                self._served = True
                self._home.wanted()


class Done(Work):
    """A work that has nothing left to do."""

    def __init__(self, home: Home, name: str, result: Sequence[Any]) -> None:
        super().__init__(home, name, result, 0)
        self._settled = True
