"""How a rank ends: in good order at interpreter exit, at once after an exception.

An exception that leaves the program prints its traceback first. Then the rank ends with code 1,
whatever threads, workers and destructors are still there, so that the other ranks learn of it at
once and the launcher names the right cause. After sys.exit() with a code other than 0 the rank does
not say good-bye to the others: they would fail for want of it, and end before it has.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import signal
import sys
import threading
from typing import Any, NoReturn, Optional

from . import _abi
from .handles import forked

# Functions registered with atexit have so much time after an exception.
_SECONDS = 0.7

_installed = False
_failed = False
_previous_hook: Any = None
_previous_exit: Any = None
# Of the last sys.exit() with a code that means failure: how many operations there had been.
_gave_up_after: Optional[int] = None


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


def _operations() -> int:
    info = _abi.CountersInfo(ctypes.sizeof(_abi.CountersInfo))
    return info.operations if _abi.library().get_counters(ctypes.byref(info)) == _abi.OK else -1


def _on_sys_exit(status: Any = None) -> NoReturn:
    global _gave_up_after
    # In another thread it ends only that thread.
    if threading.current_thread() is threading.main_thread() and not forked():
        _gave_up_after = _operations() if status is not None and status != 0 else None
    _previous_exit(status)


def _at_exit() -> None:
    if forked() or _failed:
        return
    # Somebody may have caught the SystemExit and gone on.
    if _gave_up_after is not None and 0 <= _gave_up_after == _operations():
        _end_without_good_bye()
    else:
        _abi.library().shutdown()


def _end_without_good_bye() -> None:
    """After Python's own end, the process ends before the library's would tell the others."""
    c = ctypes.CDLL(None)
    c.fflush(None)
    # Functions of on_exit get the process's status: exactly what _exit takes.
    c.on_exit(ctypes.cast(c._exit, ctypes.c_void_p), None)


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except Exception:
            pass


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
    if not _abi.library().is_initialised():
        return
    _failed = True
    code = 128 + signal.SIGINT if issubclass(kind, KeyboardInterrupt) else 1
    _end_soon(code)  # first: everything below may wait for a lock of some thread
    _flush()
    try:
        atexit._run_exitfuncs()
    except BaseException:
        pass
    _flush()
    os._exit(code)
