"""Collective operations on NumPy arrays. Results are new arrays; `…_async` forms return a handle.

    import farandole.numpy as fnp
    total = fnp.allreduce(numpy.ones(10), op=fnp.Sum)

`allreduce_` and `shared` are the two that need no copy.
"""

from __future__ import annotations

from typing import Any, Callable, Sequence

import numpy

from . import _abi, core, objects
from .basics import *  # noqa: F403
from .dtypes import Adasum, Average, DType, Max, Min, Product, ReduceOp, Sum  # noqa: F401
from .errors import InvalidArgument
from .handles import Handle as CoreHandle
from .handles import Request, submit, submit_group
from .process_sets import AnySet, set_id

broadcast_object = objects.broadcast_object
allgather_object = objects.allgather_object
barrier = core.barrier
join = core.join

# bfloat16 is the one of the package ml_dtypes.
_DTYPES = {kind.name.lower(): kind for kind in DType}
# These have no arithmetic here, but they can be moved.
_MOVED = {"uint32": DType.INT32, "uint64": DType.INT64}


class Handle:
    """An operation in flight; wait() returns its result."""

    def __init__(self, parts: list[CoreHandle], finish: Callable[[], Any]) -> None:
        self._parts = parts
        self._finish = finish

    def done(self) -> bool:
        return all(part.done() for part in self._parts)

    def wait(self, timeout: float | None = None) -> Any:
        for part in self._parts:
            part.wait(timeout)
        return self._finish()


def _array(value: Any, what: str, name: str | None, moved: bool = False) -> tuple[Any, int]:
    array = numpy.ascontiguousarray(value).reshape(numpy.shape(value))
    found = _DTYPES.get(array.dtype.name)
    if found is None and moved:
        found = _MOVED.get(array.dtype.name)
    if found is None or not array.dtype.isnative:
        label = what if name is None else f"{what} '{name}'"
        raise InvalidArgument(
            f"{label}: arrays of {array.dtype} are not supported; possible are "
            + ", ".join(_DTYPES),
            tensor=name or "",
        )
    return array, found


def _reduce_request(
    value: Any, op: int, name: str | None, prescale: float, postscale: float, process_set: AnySet
) -> tuple[Request, Any]:
    array, dtype = _array(value, "allreduce", name)
    output = numpy.empty_like(array)
    request = Request(
        _abi.ALLREDUCE,
        input=array.ctypes.data,
        output=output.ctypes.data,
        output_bytes=output.nbytes,
        shape=array.shape,
        dtype=dtype,
        op=int(op),
        set=set_id(process_set),
        name=name,
        prescale=prescale,
        postscale=postscale,
        keep=(array, output),
    )
    return request, output


def allreduce_async(
    array: Any,
    op: int = Average,
    name: str | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: AnySet = 0,
) -> Handle:
    request, output = _reduce_request(
        array, op, name, prescale_factor, postscale_factor, process_set
    )
    return Handle([submit(request)], lambda: output)


def allreduce(
    array: Any,
    op: int = Average,
    name: str | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: AnySet = 0,
) -> numpy.ndarray:
    """The reduction over all ranks; the average, unless `op` says otherwise."""
    return allreduce_async(array, op, name, prescale_factor, postscale_factor, process_set).wait()


def allreduce_(
    array: numpy.ndarray, op: int = Average, name: str | None = None, process_set: AnySet = 0
) -> numpy.ndarray:
    """In place; the array must be contiguous."""
    if not isinstance(array, numpy.ndarray) or not array.flags.c_contiguous:
        raise InvalidArgument("allreduce_ needs a contiguous array", tensor=name or "")
    _, dtype = _array(array, "allreduce", name)
    place = array.ctypes.data
    core.allreduce(
        place, place, array.shape, dtype, int(op), name=name, process_set=process_set, keep=array
    ).wait()
    return array


def grouped_allreduce(
    arrays: Sequence[Any], op: int = Average, name: str | None = None, process_set: AnySet = 0
) -> list[numpy.ndarray]:
    """Several arrays, reduced together or not at all."""
    made = [
        _reduce_request(array, op, None if name is None else f"{name}_{i}", 1.0, 1.0, process_set)
        for i, array in enumerate(arrays)
    ]
    parts = submit_group([request for request, _ in made])
    for part in parts:
        part.wait()
    return [output for _, output in made]


def _owned(handle: CoreHandle, dtype: Any) -> tuple[numpy.ndarray, tuple[int, ...]]:
    result = handle.result()
    flat = numpy.frombuffer(core.result_view(handle), dtype=dtype)
    return flat.reshape(result.shape), result.splits


def allgather_async(array: Any, name: str | None = None, process_set: AnySet = 0) -> Handle:
    source, dtype = _array(array, "allgather", name, moved=True)
    part = core.allgather(
        source.ctypes.data,
        source.shape or (1,),
        dtype,
        name=name,
        process_set=process_set,
        keep=source,
    )
    return Handle([part], lambda: _owned(part, source.dtype)[0])


def allgather(array: Any, name: str | None = None, process_set: AnySet = 0) -> numpy.ndarray:
    """The arrays of all ranks, concatenated; first dimensions may differ."""
    return allgather_async(array, name, process_set).wait()


def broadcast_async(
    array: Any, root_rank: int, name: str | None = None, process_set: AnySet = 0
) -> Handle:
    source, dtype = _array(array, "broadcast", name, moved=True)
    output = numpy.empty_like(source)
    part = core.broadcast(
        source.ctypes.data,
        output.ctypes.data,
        source.shape,
        dtype,
        root_rank,
        output_bytes=output.nbytes,
        name=name,
        process_set=process_set,
        keep=(source, output),
    )
    return Handle([part], lambda: output)


def broadcast(
    array: Any, root_rank: int, name: str | None = None, process_set: AnySet = 0
) -> numpy.ndarray:
    """root_rank's values; root_rank is a rank of the world."""
    return broadcast_async(array, root_rank, name, process_set).wait()


def alltoall(
    array: Any,
    splits: Sequence[int] | None = None,
    name: str | None = None,
    process_set: AnySet = 0,
) -> tuple[numpy.ndarray, tuple[int, ...]]:
    """splits[i] rows go to member i. Returns the rows received, and how many came from each."""
    source, dtype = _array(array, "alltoall", name, moved=True)
    part = core.alltoall(
        source.ctypes.data,
        source.shape,
        dtype,
        splits=None if splits is None else [int(each) for each in splits],
        name=name,
        process_set=process_set,
        keep=source,
    )
    return _owned(part, source.dtype)


def reducescatter(
    array: Any, op: int = Average, name: str | None = None, process_set: AnySet = 0
) -> numpy.ndarray:
    """This rank's rows of the reduction; as even as possible, first ranks get one more."""
    source, dtype = _array(array, "reducescatter", name)
    part = core.reducescatter(
        source.ctypes.data,
        source.shape,
        dtype,
        op=int(op),
        name=name,
        process_set=process_set,
        keep=source,
    )
    return _owned(part, source.dtype)[0]


def shared(shape: Any, dtype: Any = numpy.float32) -> numpy.ndarray:
    """A zeroed array in memory that the ranks of a machine share: reduced without a copy."""
    kind = numpy.dtype(dtype)
    sizes = (shape,) if isinstance(shape, int) else tuple(shape)
    count = int(numpy.prod(sizes, dtype=numpy.int64))
    buffer = core.SharedBuffer(count * kind.itemsize)
    return numpy.frombuffer(buffer.view(), dtype=kind, count=count).reshape(sizes)
