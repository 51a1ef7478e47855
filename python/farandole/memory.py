"""Memory that the ranks of a machine share: it is reduced without a copy."""

from __future__ import annotations

import ctypes
from ctypes import byref, c_void_p
from typing import Any

from . import _abi
from .handles import forked


class SharedBuffer:
    """`nbytes` zeroed bytes, 64-byte aligned. Lives as long as this object or a view of it."""

    def __init__(self, nbytes: int) -> None:
        self.nbytes = nbytes
        self.address = 0
        memory = c_void_p()
        _abi.check(_abi.library().allocate(max(1, nbytes), byref(memory)))
        self.address = memory.value or 0

    def view(self) -> Any:
        """A writable buffer, for numpy.frombuffer and the like, that keeps the memory alive."""
        view = (ctypes.c_ubyte * self.nbytes).from_address(self.address)
        view._owner = self
        return view

    def is_shared(self) -> bool:
        return bool(_abi.library().is_shared(self.address, self.nbytes))

    def __del__(self) -> None:
        try:
            if self.address and not forked():
                _abi.library().free(self.address)
        except Exception:  # the interpreter may be half gone
            pass


def result_view(handle: Any) -> Any:
    """The result of a finished operation that the library owns, as a buffer that keeps it alive."""
    result = handle.result()
    view = (ctypes.c_ubyte * result.nbytes).from_address(result.address or ctypes.addressof(_EMPTY))
    view._owner = handle
    return view


_EMPTY = ctypes.c_ubyte()
