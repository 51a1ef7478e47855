"""Memory that the ranks of a machine share: it is reduced without a copy."""

from __future__ import annotations

import ctypes
from ctypes import byref, c_void_p
from typing import Any

from ._library import check, library
from .handles import Handle, forked


class SharedBuffer:
    """`nbytes` zeroed bytes, 64-byte aligned. Lives as long as this object or a view of it."""

    def __init__(self, nbytes: int) -> None:
        self.nbytes = nbytes
        self.address = 0
        memory = c_void_p()
        check(library().allocate(max(1, nbytes), byref(memory)))
        self.address = memory.value or 0

    def view(self) -> ctypes.Array[ctypes.c_ubyte]:
        """A writable buffer, for numpy.frombuffer and the like, that keeps the memory alive."""
        return _owned(self.address, self.nbytes, self)

    def is_shared(self) -> bool:
        return bool(library().is_shared(self.address, self.nbytes))

    def __del__(self) -> None:
        try:
            if self.address and not forked():
                library().free(self.address)
        except Exception:  # the interpreter may be half gone
            pass


def result_view(handle: Handle) -> ctypes.Array[ctypes.c_ubyte]:
    """The result of a finished operation that the library owns, as a buffer that keeps it alive."""
    result = handle.result()
    return _owned(result.address or ctypes.addressof(_EMPTY), result.nbytes, handle)


def _owned(address: int, nbytes: int, owner: object) -> ctypes.Array[ctypes.c_ubyte]:
    view: Any = (ctypes.c_ubyte * nbytes).from_address(address)
    view._owner = owner
    made: ctypes.Array[ctypes.c_ubyte] = view
    return made


_EMPTY = ctypes.c_ubyte()
