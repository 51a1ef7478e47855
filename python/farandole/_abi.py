"""The C ABI (farandole.h) as ctypes sees it: structs, constants, and the loaded library.

Every call releases the interpreter's lock. Nothing here calls back into Python.
"""

from __future__ import annotations

import ctypes
from ctypes import (
    CDLL,
    POINTER,
    Structure,
    byref,
    c_char_p,
    c_double,
    c_int32,
    c_int64,
    c_size_t,
    c_uint32,
    c_uint64,
    c_void_p,
)

from ._library import find_library
from .errors import Error, LibraryNotFound, make

ABI_VERSION = 1

OK = 0
MISMATCH = 2
PEER_LOST = 4
TIMEOUT = 5
INTERRUPTED = 6

ALLREDUCE = 0
ALLGATHER = 1
BROADCAST = 2
ALLTOALL = 3
REDUCESCATTER = 4
REDUCE = 5
GATHER = 6
SCATTER = 7
BARRIER = 8
JOIN = 9
SEND = 10
RECV = 11

ANY_RANK = -1
BYTES_UNKNOWN = -1
FLAG_WILL_WAIT = 1
FLAG_ORDERED = 2
FLAG_CALLBACK_ANYWHERE = 4


class InitOptions(Structure):
    _fields_ = [("struct_size", c_uint32), ("reserved", c_uint32), ("timeout_ms", c_int64)]


class ErrorInfo(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("code", c_int32),
        ("rank", c_int32),
        ("reserved", c_uint32),
        ("host", c_char_p),
        ("tensor", c_char_p),
        ("message", c_char_p),
    ]

    def exception(self, code: int) -> Error:
        """As an exception; the texts are copied."""

        def text(value: bytes | None) -> str:
            return (value or b"").decode("utf-8", "replace")

        return make(code, text(self.message), self.rank, text(self.host), text(self.tensor))


class Request(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("operation", c_int32),
        ("dtype", c_int32),
        ("op", c_int32),
        ("root", c_int32),
        ("set", c_int32),
        ("flags", c_uint32),
        ("tag", c_int32),
        ("name", c_char_p),
        ("input", c_void_p),
        ("output", c_void_p),
        ("shape", POINTER(c_int64)),
        ("ndim", c_int32),
        ("nsplits", c_int32),
        ("splits", POINTER(c_int64)),
        ("prescale", c_double),
        ("postscale", c_double),
        ("group", c_uint64),
        ("allocate", c_void_p),
        ("allocate_user", c_void_p),
        ("on_complete", c_void_p),
        ("on_complete_user", c_void_p),
        ("queue", c_void_p),
        ("queue_tag", c_uint64),
        ("output_bytes", c_int64),
    ]


class ResultInfo(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("code", c_int32),
        ("data", c_void_p),
        ("bytes", c_size_t),
        ("shape", POINTER(c_int64)),
        ("ndim", c_int32),
        ("nsplits", c_int32),
        ("splits", POINTER(c_int64)),
        ("last_joined", c_int32),
        ("source", c_int32),
        ("error", ErrorInfo),
    ]


class Completion(Structure):
    _fields_ = [
        ("handle", c_uint64),
        ("tag", c_uint64),
        ("code", c_int32),
        ("reserved", c_uint32),
    ]


class CountersInfo(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("operations", c_uint64),
        ("batches", c_uint64),
        ("bytes", c_uint64),
        ("plan_hits", c_uint64),
        ("plan_misses", c_uint64),
        ("zero_copy_bytes", c_uint64),
    ]


_FUNCTIONS = {
    "abi_version": (c_uint32, []),
    "version": (c_char_p, []),
    "init": (c_int32, [POINTER(InitOptions)]),
    "shutdown": (c_int32, []),
    "end_with_process": (c_int32, [c_int32]),
    "is_initialised": (c_int32, []),
    "rank": (c_int32, []),
    "size": (c_int32, []),
    "local_rank": (c_int32, []),
    "local_size": (c_int32, []),
    "cross_rank": (c_int32, []),
    "cross_size": (c_int32, []),
    "epoch": (c_uint64, []),
    "last_error": (c_int32, [POINTER(ErrorInfo)]),
    "allocate": (c_int32, [c_size_t, POINTER(c_void_p)]),
    "free": (c_int32, [c_void_p]),
    "is_shared": (c_int32, [c_void_p, c_size_t]),
    "add_set": (c_int32, [POINTER(c_int32), c_int32, POINTER(c_int32)]),
    "remove_set": (c_int32, [c_int32]),
    "set_size": (c_int32, [c_int32]),
    "set_rank": (c_int32, [c_int32]),
    "set_ranks": (c_int32, [c_int32, POINTER(c_int32), c_int32]),
    "set_count": (c_int32, []),
    "set_ids": (c_int32, [POINTER(c_int32), c_int32]),
    "submit": (c_int32, [POINTER(Request), c_size_t, POINTER(c_uint64)]),
    "wait": (c_int32, [c_uint64, c_int64]),
    "test": (c_int32, [c_uint64, POINTER(c_int32)]),
    "cancel": (c_int32, [c_uint64]),
    "release": (c_int32, [c_uint64]),
    "get_result": (c_int32, [c_uint64, POINTER(ResultInfo)]),
    "queue_create": (c_int32, [POINTER(c_void_p), POINTER(c_int32)]),
    "queue_pop": (c_size_t, [c_void_p, POINTER(Completion), c_size_t]),
    "queue_destroy": (c_int32, [c_void_p]),
    "start_timeline": (c_int32, [c_char_p]),
    "stop_timeline": (c_int32, []),
    "get_counters": (c_int32, [POINTER(CountersInfo)]),
}


class Library:
    """The functions of libfarandole.so, without their prefix: library().rank()."""

    def __init__(self, path: str) -> None:
        try:
            loaded = CDLL(path)
        except OSError as error:
            raise LibraryNotFound(f"{path} cannot be loaded: {error}") from None
        self.path = path
        for name, (result, arguments) in _FUNCTIONS.items():
            try:
                function = getattr(loaded, "farandole_" + name)
            except AttributeError:
                raise LibraryNotFound(f"{path} has no farandole_{name}: it is too old") from None
            function.restype = result
            function.argtypes = arguments
            setattr(self, name, function)
        found = self.abi_version()  # type: ignore[attr-defined]
        if found != ABI_VERSION:
            raise LibraryNotFound(
                f"{path} has ABI version {found}, this package needs {ABI_VERSION}: "
                "take both from one release"
            )


_library: Library | None = None


def library() -> Library:
    """The library, loaded at the first call."""
    global _library
    if _library is None:
        _library = Library(find_library())
    return _library


def library_version() -> str:
    return library().version().decode()  # type: ignore[attr-defined]


def last_error(code: int) -> Error:
    """This thread's last failure as an exception."""
    info = ErrorInfo(ctypes.sizeof(ErrorInfo))
    library().last_error(byref(info))  # type: ignore[attr-defined]
    return info.exception(code)


def check(code: int) -> None:
    if code != OK:
        raise last_error(code)
