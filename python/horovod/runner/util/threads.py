"""Threads."""

from __future__ import annotations

import threading
from typing import Any, Callable, Sequence


def in_thread(
    target: Callable[..., Any],
    args: Sequence[Any] = (),
    name: Any = None,
    daemon: bool = True,
    silent: bool = False,
) -> threading.Thread:
    """Runs target(*args) in a thread of its own, and returns that."""
    if not isinstance(args, tuple):
        raise ValueError("args must be a tuple: for one argument, (value,)")

    def body() -> None:
        try:
            target(*args)
        except Exception:
            if not silent:
                raise

    thread = threading.Thread(target=body, name=name, daemon=daemon)
    thread.start()
    return thread
