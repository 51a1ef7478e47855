"""The C ABI as ctypes sees it: farandole.h once more, and nothing else.

tests/python/test_abi.py compares the two: every constant, struct and function. `_library.py` loads
the library that has these functions; `dtypes.py` has the numbers of element types and reductions.
"""

from __future__ import annotations

from ctypes import (
    POINTER,
    Structure,
    c_char_p,
    c_double,
    c_int32,
    c_int64,
    c_size_t,
    c_uint32,
    c_uint64,
    c_void_p,
)

ABI_VERSION = 1

# farandole_code
OK = 0
INVALID_ARGUMENT = 1
MISMATCH = 2
DUPLICATE_NAME = 3
PEER_LOST = 4
TIMEOUT = 5
INTERRUPTED = 6
CANCELLED = 7
SHUTDOWN = 8
OUT_OF_MEMORY = 9
UNAVAILABLE = 10
FORKED = 11
NOT_INITIALISED = 12
INTERNAL = 13

# farandole_operation
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

# Flags of a request, and other constants.
ANY_RANK = -1
BYTES_UNKNOWN = -1
FLAG_WILL_WAIT = 1
FLAG_ORDERED = 2
FLAG_CALLBACK_ANYWHERE = 4


class InitOptions(Structure):
    """farandole_init_options"""

    _fields_ = [("struct_size", c_uint32), ("reserved", c_uint32), ("timeout_ms", c_int64)]


class ErrorInfo(Structure):
    """farandole_error"""

    _fields_ = [
        ("struct_size", c_uint32),
        ("code", c_int32),
        ("rank", c_int32),
        ("reserved", c_uint32),
        ("host", c_char_p),
        ("tensor", c_char_p),
        ("message", c_char_p),
    ]


class Request(Structure):
    """farandole_request"""

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
    """farandole_result"""

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
    """farandole_completion"""

    _fields_ = [
        ("handle", c_uint64),
        ("tag", c_uint64),
        ("code", c_int32),
        ("reserved", c_uint32),
    ]


class CountersInfo(Structure):
    """farandole_counters"""

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


# By name without the prefix farandole_: result, arguments.
FUNCTIONS = {
    "abi_version": (c_uint32, []),
    "version": (c_char_p, []),
    "code_name": (c_char_p, [c_int32]),
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
    "call": (c_int32, [POINTER(Request), c_int64, POINTER(c_uint64)]),
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
