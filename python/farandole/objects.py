"""Python objects between the ranks of one job, as pickles; only at the request of the caller."""

from __future__ import annotations

import ctypes
import pickle
from typing import Any

from . import core
from .errors import OperationFailed
from .process_sets import AnySet


def _dumps(value: Any) -> bytes:
    try:
        import cloudpickle

        return bytes(cloudpickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL))
    except ImportError:
        return pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)


def _named(name: str | None, part: str) -> str | None:
    return None if name is None else f"{name}.{part}"


def broadcast_object(
    value: Any, root_rank: int = 0, name: str | None = None, process_set: AnySet = 0
) -> Any:
    """root_rank's object, on every member. One that cannot be pickled raises on all of them."""
    failure: Exception | None = None
    data = b""
    length = ctypes.c_int64(-1)
    if core.rank() == root_rank:
        try:
            data = _dumps(value)
            length.value = len(data)
        except Exception as error:  # the others must not wait for it
            failure = error
    place = ctypes.addressof(length)
    core.broadcast(
        place,
        place,
        1,
        core.DType.INT64,
        root_rank,
        name=_named(name, "size"),
        process_set=process_set,
        keep=length,
    ).wait()
    if failure is not None:
        raise failure
    if length.value < 0:
        raise OperationFailed(
            f"rank {root_rank} could not pickle the object to broadcast; its own error says why",
            rank=root_rank,
        )
    buffer = (ctypes.c_ubyte * length.value)()
    if core.rank() == root_rank:
        ctypes.memmove(buffer, data, len(data))
    place = ctypes.addressof(buffer)
    core.broadcast(
        place,
        place,
        length.value,
        core.DType.UINT8,
        root_rank,
        name=_named(name, "data"),
        process_set=process_set,
        keep=buffer,
    ).wait()
    return value if core.rank() == root_rank else pickle.loads(memoryview(buffer))


def allgather_object(value: Any, name: str | None = None, process_set: AnySet = 0) -> list[Any]:
    """Every member's object, in the order of ranks, without those that have joined."""
    data = _dumps(value)
    buffer = ctypes.create_string_buffer(data, max(1, len(data)))
    handle = core.allgather(
        ctypes.addressof(buffer),
        len(data),
        core.DType.UINT8,
        name=name,
        process_set=process_set,
        keep=buffer,
    )
    lengths = handle.result().splits
    gathered = memoryview(core.result_view(handle))
    objects = []
    start = 0
    for length in lengths:
        if length == 0:
            continue
        objects.append(pickle.loads(gathered[start : start + length]))
        start += length
    return objects
