"""Horovod's names, served by Farandole: scripts written for Horovod 0.28 run unmodified."""

from __future__ import annotations

from typing import Any

__version__ = "0.28.1"


def run(*args: Any, **kwargs: Any) -> list[Any]:
    """horovod.run(): see horovod.runner.run."""
    from .runner import run as start

    return start(*args, **kwargs)
