"""DDP's buckets in shared memory.

DDP keeps its gradients in a few large tensors that live as long as the model. They are ordinary
memory, which the ranks of a machine can only exchange through copies. So the pages under such a
tensor are exchanged once for pages of Farandole's shared memory: the tensor, its address and all
views of it stay what they are, and from then on it is reduced in place.

How: PyTorch moves a storage into a mapping of its own, as it does when a tensor is sent to another
process, and a second mapping of the shared pages is laid over that one. PyTorch unmaps it when the
storage ends.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import sys
from typing import Any

import torch
from torch.multiprocessing.reductions import StorageWeakRef

from .. import errors
from ..memory import SharedBuffer

# Smaller ones gain nothing.
_LEAST_BYTES = 64 << 10
_MREMAP_MAYMOVE_FIXED = 3


def called_by_autograd(depth: int = 2) -> bool:
    """Whether the caller of the calling function is C++ within backward(): DDP, and no script."""
    try:
        name: str = sys._getframe(depth).f_globals.get("__name__", "")
    except ValueError:  # a thread of the engine's own
        return True
    return name.startswith("torch.autograd")


class _Place:
    """One storage: seen before, and exchanged if that was possible."""

    def __init__(self, storage: Any) -> None:
        self.reference = StorageWeakRef(storage)
        self.buffer: SharedBuffer | None = None
        self.shared = 0  # address of its shared pages
        self.uses = 0
        self.last = False  # of the last backward() it was used in
        self.what: Any = None  # what `request` asks for
        self.request: Any = None


class Buckets:
    """The storages that DDP has used so far. Guarded by the interpreter lock."""

    def __init__(self) -> None:
        self._places: dict[int, _Place] = {}  # by address of the storage's memory
        self._latest: _Place | None = None
        self._remap = ctypes.CDLL(None, use_errno=True).mremap
        self._remap.restype = ctypes.c_void_p
        self._remap.argtypes = [
            ctypes.c_void_p,
            ctypes.c_size_t,
            ctypes.c_size_t,
            ctypes.c_int,
            ctypes.c_void_p,
        ]

    def find(self, tensor: torch.Tensor) -> tuple[_Place, int]:
        """The tensor's place, and where the engine finds its elements. Keep place.buffer alive."""
        storage = _storage(tensor)
        base = storage.data_ptr()
        place = self._places.get(base)
        if place is None or place.reference.cdata != storage._cdata:
            self._sweep()
            place = self._places[base] = _Place(storage)
        place.uses += 1
        # The buckets of the very first step are thrown away after it.
        if place.uses == 2 and storage.nbytes() >= _LEAST_BYTES:
            self._exchange(place, storage)
        self._latest = place
        address = tensor.data_ptr()
        if place.buffer is not None:
            address += place.shared - storage.data_ptr()
        return place, address

    def end_of_backward(self) -> None:
        """The bucket that came last in this backward() will probably be last in the next."""
        if self._latest is not None:
            for place in self._places.values():
                place.last = place is self._latest
            self._latest = None

    def _sweep(self) -> None:
        """Forgets storages that no longer exist."""
        gone = [base for base, place in self._places.items() if place.reference.expired()]
        for base in gone:
            del self._places[base]

    def _exchange(self, place: _Place, storage: Any) -> None:
        """Exchanges the pages; leaves the storage as it is if a condition is not met."""
        nbytes = storage.nbytes()
        pages = -(-nbytes // mmap.PAGESIZE) * mmap.PAGESIZE
        if storage.is_shared() or not _movable(storage) or not _room_for(pages):
            return
        try:
            buffer = SharedBuffer(pages + mmap.PAGESIZE)
        except errors.Error:
            return
        if not buffer.is_shared():
            return
        first = -(-buffer.address // mmap.PAGESIZE) * mmap.PAGESIZE
        old = storage.data_ptr()
        file, _ = storage._share_fd_cpu_()
        base = storage.data_ptr()
        ctypes.memmove(first, base, nbytes)
        # Of size 0: a second mapping of the same pages, not a move.
        if self._remap(first, 0, pages, _MREMAP_MAYMOVE_FIXED, base) != base:
            return
        os.ftruncate(file, 0)  # these pages are no longer mapped
        self._places[base] = self._places.pop(old)
        place.buffer = buffer
        place.shared = first


def _storage(tensor: torch.Tensor) -> Any:
    if hasattr(tensor, "untyped_storage"):
        return tensor.untyped_storage()
    return tensor.storage().untyped()  # 1.13


def _movable(storage: Any) -> bool:
    """False if something outside PyTorch, such as a numpy array, uses the same memory."""
    return bool(storage.resizable()) if hasattr(storage, "resizable") else True


def _room_for(nbytes: int) -> bool:
    """Whether /dev/shm has room for the exchange; without, older versions of PyTorch crash."""
    try:
        status = os.statvfs("/dev/shm")
    except OSError:
        return False
    return status.f_bavail * status.f_frsize > 2 * nbytes
