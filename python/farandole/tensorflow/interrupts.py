"""Ctrl-C while a graph waits for another rank.

The main thread is inside TensorFlow then, where Python runs no signal handler before the graph
ends. So a thread of ours hears of the signal and withdraws the operations in flight; the graph ends
with an error, and Python raises KeyboardInterrupt. A program's own handler for SIGINT is left
alone: it may want the step to be finished.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from typing import Any, Callable

_started = False


def _makes_an_error(frame: Any) -> bool:
    """TensorFlow's C++ calls Python to make its exceptions, and cannot have another one there."""
    while frame is not None:
        if frame.f_code.co_filename.endswith("errors_impl.py"):
            return True
        frame = frame.f_back
    return False


def _interrupt(number: int, frame: Any) -> None:
    """In place of Python's own handler: the same, or as soon as that is possible."""
    if not _makes_an_error(frame):
        signal.default_int_handler(number, frame)
    before = sys.getprofile()

    def later(current: Any, event: str, argument: Any) -> None:
        if not _makes_an_error(current):
            sys.setprofile(before)
            raise KeyboardInterrupt

    sys.setprofile(later)


def _listen(pipe: int, withdraw: Callable[[], None]) -> None:
    while True:
        arrived = os.read(pipe, 64)
        if not arrived:
            return
        if signal.SIGINT in arrived and signal.getsignal(signal.SIGINT) is _interrupt:
            withdraw()


def _ours_no_more() -> None:
    """A child of fork() does not tell the parent of its own signals."""
    global _started
    if not _started:  # a child of the child: what is set there is the program's
        return
    _started = False
    with contextlib.suppress(ValueError):
        signal.set_wakeup_fd(-1)


def withdraw_on_ctrl_c(withdraw: Callable[[], None]) -> None:
    """Works once, on the main thread, and only if asyncio or the like has no wake-up fd."""
    global _started
    if _started or threading.current_thread() is not threading.main_thread():
        return
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        return
    _started = True
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    before = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    if before != -1:
        signal.set_wakeup_fd(before)
        os.close(reading)
        os.close(writing)
        return
    signal.signal(signal.SIGINT, _interrupt)
    os.register_at_fork(after_in_child=_ours_no_more)
    threading.Thread(
        target=_listen, args=(reading, withdraw), name="farandole-ctrl-c", daemon=True
    ).start()
