"""Observing a running job: a timeline, and counters."""

from __future__ import annotations

import os
from ctypes import byref, sizeof

from . import _abi
from ._library import check, library


def start_timeline(path: str) -> None:
    """Writes a Chrome trace of all ranks of this machine. All ranks call it."""
    check(library().start_timeline(os.fsencode(path)))


def stop_timeline() -> None:
    check(library().stop_timeline())


def counters() -> dict[str, int]:
    """Operations, engine batches, bytes, plan hits and misses, bytes reduced without a copy."""
    info = _abi.CountersInfo(struct_size=sizeof(_abi.CountersInfo))
    check(library().get_counters(byref(info)))
    names = (name for name, *_ in _abi.CountersInfo._fields_)
    return {name: getattr(info, name) for name in names if name not in ("struct_size", "reserved")}
