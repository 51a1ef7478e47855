"""How a rank ends: in an orderly way at interpreter exit, at once after an exception.

An exception that leaves the program prints its traceback first. Then the rank ends with code 1,
whatever threads, workers and destructors are still there, so that the other ranks learn of it at
once and the launcher names the right cause. A rank that ends with another code than 0 in any other
way (sys.exit, raise SystemExit) does not say good-bye to the others: they would fail for want of
it, and end before it has. Python does not tell the code to functions at exit, but C does: later,
which is too late for operations that MPI or connections carry. For these, sys.exit gives a hint.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import signal
import sys
import threading
from typing import Any

from ._library import library
from .handles import forked

# The time that functions registered with atexit have after an exception.
_SECONDS = 0.7

_installed = False
_failed = False
_previous_hook: Any = None
_previous_exit: Any = None
_failing = False  # the last sys.exit() had a code other than 0; it may have been caught


def install(size: int) -> None:
    """Called by every init; works once."""
    global _installed, _previous_hook, _previous_exit
    if _installed:
        return
    _installed = True
    atexit.register(_at_exit)
    interactive = hasattr(sys, "ps1") or sys.flags.interactive
    if size > 1 and not interactive:
        _previous_hook = sys.excepthook
        sys.excepthook = _on_exception
        _previous_exit = sys.exit
        sys.exit = _on_sys_exit


def _on_sys_exit(status: Any = None) -> Any:
    global _failing
    # In another thread it ends only that thread.
    if threading.current_thread() is threading.main_thread():
        _failing = status is not None and status != 0
    return _previous_exit(status)


def _at_exit() -> None:
    if forked() or _failed:
        return
    if "mpi4py.MPI" in sys.modules and not _failing:
        library().shutdown()  # mpi4py ends MPI with Python, before C tells the code
    else:
        library().end_with_process(_failing)


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()


def _end_soon(code: int) -> None:
    def end() -> None:
        threading.Event().wait(_SECONDS)
        os._exit(code)

    threading.Thread(target=end, name="farandole-leaving", daemon=True).start()


def _on_exception(kind: Any, value: Any, traceback: Any) -> None:
    global _failed
    _previous_hook(kind, value, traceback)
    # An exception of a thread does not end the program, nor does one that is only being shown.
    if forked() or threading.current_thread() is not threading.main_thread():
        return
    if not library().is_initialised():
        return
    _failed = True
    code = 128 + signal.SIGINT if issubclass(kind, KeyboardInterrupt) else 1
    _end_soon(code)  # first: everything below may wait for a lock of some thread
    _flush()
    with contextlib.suppress(BaseException):
        atexit._run_exitfuncs()
    _flush()
    os._exit(code)
