"""Ctrl-C while a graph waits for another rank.

The main thread is inside of TensorFlow then, where Python runs no signal handler before the graph
ends. So a thread of ours hears of the signal and withdraws the operations in flight; the graph ends
with an error, and Python raises KeyboardInterrupt. A program's own handler for SIGINT is left alone:
it may want the step to be finished.
"""

from __future__ import annotations

import os
import signal
import threading
from typing import Callable

_started = False


def _listen(pipe: int, withdraw: Callable[[], None]) -> None:
    while True:
        arrived = os.read(pipe, 64)
        if not arrived:
            return
        asked = signal.getsignal(signal.SIGINT) is signal.default_int_handler
        if asked and signal.SIGINT in arrived:
            withdraw()


def _ours_no_more() -> None:
    """A child of fork() does not tell the parent of its own signals."""
    try:
        signal.set_wakeup_fd(-1)
    except ValueError:
        pass


def withdraw_on_ctrl_c(withdraw: Callable[[], None]) -> None:
    """Works once, on the main thread, and only if nobody else (asyncio) listens in this way."""
    global _started
    if _started or threading.current_thread() is not threading.main_thread():
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
    os.register_at_fork(after_in_child=_ours_no_more)
    threading.Thread(
        target=_listen, args=(reading, withdraw), name="farandole-ctrl-c", daemon=True
    ).start()
