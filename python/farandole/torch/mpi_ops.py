"""Collective operations on tensors: asynchronous ones return a handle for poll() and synchronize().

The blocking forms without a trailing underscore can be differentiated.
"""

from __future__ import annotations

from typing import Any, Callable, Optional, Sequence, Union

import torch

from .. import _abi, core
from ..basics import *  # noqa: F403  (scripts look for init, rank, … here, too)
from ..dtypes import Adasum, Average, Max, Min, Product, ReduceOp, Sum  # noqa: F401
from ..errors import InvalidArgument
from ..handles import Handle as CoreHandle
from ..handles import Request, submit, submit_group
from ..process_sets import AnySet, ProcessSet, global_process_set, set_id
from . import _tensors


class Handle:
    """Operations in flight and what to make of their results."""

    __slots__ = ("_done", "_finish", "_output", "_parts")

    def __init__(self, parts: list[CoreHandle], finish: Callable[[], Any]) -> None:
        self._parts = parts
        self._finish = finish
        self._output: Any = None
        self._done = False

    def poll(self) -> bool:
        return self._done or all(part.done() for part in self._parts)

    def wait(self, timeout: float | None = None) -> Any:
        if not self._done:
            # All are waited for even if one fails: none of them may write into memory later.
            failure: BaseException | None = None
            for part in self._parts:
                try:
                    part.wait(timeout)
                except Exception as error:
                    failure = failure or error
            if failure is not None:
                raise failure
            self._output = self._finish()
            self._done = True
            self._finish = None  # type: ignore[assignment]
            self._parts = []
        return self._output


def poll(handle: Any) -> bool:
    """Whether synchronize() would return at once."""
    return handle.poll()


def synchronize(handle: Any) -> Any:
    """Waits for the operation and returns its output, or raises its error."""
    return handle() if callable(handle) else handle.wait()


def handle_average_backwards_compatibility(op: int | None, average: bool | None) -> ReduceOp:
    """The operator that `op` and the older `average` stand for."""
    if op is not None:
        if average is not None:
            raise ValueError("the op parameter supersedes average: give only one of them")
        return ReduceOp(op)
    return Average if average is None or average else Sum


def _what(operation: str, name: str | None) -> str:
    return operation if name is None else f"{operation} '{name}'"


def _finish_into(target: torch.Tensor, staged: torch.Tensor) -> Callable[[], torch.Tensor]:
    """Copies the result into the tensor that the caller gets, unless it is there already."""

    def finish() -> torch.Tensor:
        if staged.data_ptr() != target.data_ptr() or staged.device != target.device:
            with torch.no_grad():
                target.copy_(staged.view(target.shape))
        return target

    return finish


def _in_place(tensor: torch.Tensor, staged: torch.Tensor) -> Callable[[], torch.Tensor]:
    if staged.data_ptr() == tensor.data_ptr() and tensor.device.type == "cpu":
        return lambda: tensor
    return _finish_into(tensor, staged)


# ---- allreduce


def _reduce_request(
    tensor: torch.Tensor,
    in_place: bool,
    name: str | None,
    op: int,
    prescale: float,
    postscale: float,
    process_set: AnySet,
    will_wait: bool = False,
) -> tuple[Request, Callable[[], torch.Tensor]]:
    what = _what("allreduce", name)
    _tensors.check(tensor, what)
    dtype = _tensors.dtype_of(tensor, what)
    source = _tensors.host(tensor)
    if in_place:
        # Staged memory is our own; a tensor that is read in place is written in place.
        place, finish = source, _in_place(tensor, source)
    else:
        place = torch.empty_like(source)
        finish = (
            (lambda: place) if tensor.device.type == "cpu" else (lambda: place.to(tensor.device))
        )
    request = Request(
        _abi.ALLREDUCE,
        input=source.data_ptr(),
        output=place.data_ptr(),
        output_bytes=place.numel() * place.element_size(),
        shape=tuple(source.shape),
        dtype=dtype,
        op=int(op),
        set=set_id(process_set),
        name=name,
        prescale=prescale,
        postscale=postscale,
        will_wait=will_wait,
        keep=(source, place, tensor),
    )
    return request, finish


def reduce_and_wait(
    tensor: torch.Tensor,
    in_place: bool,
    name: str | None,
    op: int,
    prescale: float,
    postscale: float,
    process_set: AnySet,
) -> torch.Tensor:
    """Starts and waits, without waking the background thread."""
    request, finish = _reduce_request(
        tensor, in_place, name, op, prescale, postscale, process_set, will_wait=True
    )
    submit(request).wait()
    return finish()


def allreduce_async(
    tensor: torch.Tensor,
    average: bool | None = None,
    name: str | None = None,
    op: int | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> Handle:
    """Starts a reduction over all ranks into a new tensor."""
    op = handle_average_backwards_compatibility(op, average)
    request, finish = _reduce_request(
        tensor, False, name, op, prescale_factor, postscale_factor, process_set
    )
    return Handle([submit(request)], finish)


def allreduce_async_(
    tensor: torch.Tensor,
    average: bool | None = None,
    name: str | None = None,
    op: int | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> Handle:
    """Starts a reduction in place: the tensor must be left alone until synchronize()."""
    op = handle_average_backwards_compatibility(op, average)
    request, finish = _reduce_request(
        tensor, True, name, op, prescale_factor, postscale_factor, process_set
    )
    return Handle([submit(request)], finish)


def allreduce_(
    tensor: torch.Tensor,
    average: bool | None = None,
    name: str | None = None,
    op: int | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> torch.Tensor:
    op = handle_average_backwards_compatibility(op, average)
    return reduce_and_wait(tensor, True, name, op, prescale_factor, postscale_factor, process_set)


def _grouped_allreduce(
    tensors: Sequence[torch.Tensor],
    in_place: bool,
    average: bool | None,
    name: str | None,
    op: int | None,
    prescale: float,
    postscale: float,
    process_set: AnySet,
) -> Handle:
    op = handle_average_backwards_compatibility(op, average)
    made = [
        _reduce_request(tensor, in_place, _part(name, i), op, prescale, postscale, process_set)
        for i, tensor in enumerate(tensors)
    ]
    parts = submit_group([request for request, _ in made])
    return Handle(parts, lambda: [finish() for _, finish in made])


def _part(name: str | None, index: int) -> str | None:
    return None if name is None else f"{name}_{index}"


def grouped_allreduce_async(
    tensors: Sequence[torch.Tensor],
    average: bool | None = None,
    name: str | None = None,
    op: int | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> Handle:
    """Several tensors, reduced together."""
    return _grouped_allreduce(
        tensors, False, average, name, op, prescale_factor, postscale_factor, process_set
    )


def grouped_allreduce_async_(
    tensors: Sequence[torch.Tensor],
    average: bool | None = None,
    name: str | None = None,
    op: int | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> Handle:
    return _grouped_allreduce(
        tensors, True, average, name, op, prescale_factor, postscale_factor, process_set
    )


def grouped_allreduce_(
    tensors: Sequence[torch.Tensor],
    average: bool | None = None,
    name: str | None = None,
    op: int | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> list[torch.Tensor]:
    return grouped_allreduce_async_(
        tensors, average, name, op, prescale_factor, postscale_factor, process_set
    ).wait()


def sparse_allreduce_async(
    tensor: torch.Tensor,
    name: str | None,
    op: int,
    process_set: ProcessSet = global_process_set,
) -> Callable[[], torch.Tensor]:
    """Sum or average of sparse tensors, as two allgathers; call what it returns for the result."""
    if not tensor.is_sparse:
        raise InvalidArgument(
            f"{_what('sparse_allreduce', name)}: the tensor is dense: use allreduce",
            tensor=name or "",
        )
    if op not in (Average, Sum):
        raise InvalidArgument(
            f"{_what('sparse_allreduce', name)}: only Sum and Average are possible",
            tensor=name or "",
        )
    # Rows that are named twice are added where the result is coalesced.
    indices = allgather_async(
        tensor._indices().transpose(0, 1).contiguous(),
        None if name is None else f"{name}.indices",
        process_set,
    )
    values = allgather_async(
        tensor._values(), None if name is None else f"{name}.values", process_set
    )

    def finish() -> torch.Tensor:
        all_values = synchronize(values)
        all_indices = synchronize(indices).transpose(0, 1)
        if op == Average:
            all_values = all_values / process_set.size()
        return _tensors.sparse(all_indices, all_values, tensor.size())

    return finish


# ---- allgather


def _library_result(
    handle: CoreHandle, dtype: torch.dtype, device: torch.device
) -> tuple[torch.Tensor, tuple[int, ...]]:
    """The result that the library owns, as a tensor that keeps it; and the rows of each member."""
    result = handle.result()
    tensor = _tensors.from_view(core.result_view(handle), dtype, result.shape)
    return (tensor if device.type == "cpu" else tensor.to(device)), result.splits


def _gather_request(
    tensor: torch.Tensor, name: str | None, process_set: AnySet, will_wait: bool = False
) -> Request:
    what = _what("allgather", name)
    _tensors.check(tensor, what)
    dtype = _tensors.dtype_of(tensor, what, moved=True)
    source = _tensors.host(tensor)
    return Request(
        _abi.ALLGATHER,
        input=source.data_ptr(),
        shape=tuple(source.shape) or (1,),
        dtype=dtype,
        set=set_id(process_set),
        name=name,
        will_wait=will_wait,
        keep=source,
    )


def gather_and_wait(tensor: torch.Tensor, name: str | None, process_set: AnySet) -> torch.Tensor:
    part = submit(_gather_request(tensor, name, process_set, will_wait=True))
    return _library_result(part, tensor.dtype, tensor.device)[0]


def allgather_async(
    tensor: torch.Tensor,
    name: str | None = None,
    process_set: ProcessSet = global_process_set,
) -> Handle:
    """The tensors of all ranks, concatenated; first dimensions may differ."""
    part = submit(_gather_request(tensor, name, process_set))
    return Handle([part], lambda: _library_result(part, tensor.dtype, tensor.device)[0])


def grouped_allgather_async(
    tensors: Sequence[torch.Tensor],
    name: str | None = None,
    process_set: ProcessSet = global_process_set,
) -> Handle:
    requests = [
        _gather_request(tensor, _part(name, i), process_set) for i, tensor in enumerate(tensors)
    ]
    parts = submit_group(requests)
    return Handle(
        parts,
        lambda: [
            _library_result(part, tensor.dtype, tensor.device)[0]
            for part, tensor in zip(parts, tensors)
        ],
    )


# ---- broadcast


def _broadcast(
    tensor: torch.Tensor,
    in_place: bool,
    root_rank: int,
    name: str | None,
    process_set: AnySet,
    will_wait: bool = False,
) -> Handle:
    what = _what("broadcast", name)
    _tensors.check(tensor, what)
    dtype = _tensors.dtype_of(tensor, what, moved=True)
    source = _tensors.host(tensor)
    if in_place:
        place, finish = source, _in_place(tensor, source)
    else:
        place = torch.empty_like(source)
        finish = (
            (lambda: place) if tensor.device.type == "cpu" else (lambda: place.to(tensor.device))
        )
    part = core.broadcast(
        source.data_ptr(),
        place.data_ptr(),
        tuple(source.shape),
        dtype,
        root_rank,
        name=name,
        process_set=process_set,
        will_wait=will_wait,
        keep=(source, place, tensor),
    )
    return Handle([part], finish)


def broadcast_async(
    tensor: torch.Tensor,
    root_rank: int,
    name: str | None = None,
    process_set: ProcessSet = global_process_set,
) -> Handle:
    """root_rank's values in a new tensor; root_rank is a rank of the world."""
    return _broadcast(tensor, False, root_rank, name, process_set)


def broadcast_async_(
    tensor: torch.Tensor,
    root_rank: int,
    name: str | None = None,
    process_set: ProcessSet = global_process_set,
) -> Handle:
    return _broadcast(tensor, True, root_rank, name, process_set)


def broadcast_(
    tensor: torch.Tensor,
    root_rank: int,
    name: str | None = None,
    process_set: ProcessSet = global_process_set,
) -> torch.Tensor:
    return _broadcast(tensor, True, root_rank, name, process_set, will_wait=True).wait()


# ---- alltoall

Splits = Optional[Union[torch.Tensor, Sequence[int]]]


def _split_list(splits: Splits, what: str) -> list[int] | None:
    if splits is None:
        return None
    if isinstance(splits, torch.Tensor):
        if splits.dim() != 1 or splits.is_floating_point():
            raise InvalidArgument(f"{what}: splits must be a list of integers", tensor=what)
        return [int(each) for each in splits.tolist()]
    return [int(each) for each in splits]


def alltoall_async(
    tensor: torch.Tensor,
    splits: Splits = None,
    name: str | None = None,
    process_set: ProcessSet = global_process_set,
) -> Handle:
    """splits[i] rows go to member i. The output is a tensor, with splits also the rows received."""
    what = _what("alltoall", name)
    _tensors.check(tensor, what)
    dtype = _tensors.dtype_of(tensor, what, moved=True)
    if tensor.dim() == 0:
        raise InvalidArgument(f"{what}: a tensor without dimensions cannot be split", tensor=what)
    source = _tensors.host(tensor)
    part = core.alltoall(
        source.data_ptr(),
        tuple(source.shape),
        dtype,
        splits=_split_list(splits, what),
        name=name,
        process_set=process_set,
        keep=source,
    )

    def finish() -> Any:
        output, received = _library_result(part, tensor.dtype, tensor.device)
        if splits is None:
            return output
        where = splits.device if isinstance(splits, torch.Tensor) else torch.device("cpu")
        return output, torch.tensor(received, dtype=torch.int32, device=where)

    return Handle([part], finish)


# ---- reducescatter


def _scatter_request(
    tensor: torch.Tensor,
    name: str | None,
    op: int,
    process_set: AnySet,
    prescale: float,
    postscale: float,
) -> Request:
    what = _what("reducescatter", name)
    _tensors.check(tensor, what)
    dtype = _tensors.dtype_of(tensor, what)
    if tensor.dim() == 0:
        raise InvalidArgument(f"{what}: a tensor without dimensions cannot be split", tensor=what)
    source = _tensors.host(tensor)
    return Request(
        _abi.REDUCESCATTER,
        input=source.data_ptr(),
        shape=tuple(source.shape),
        dtype=dtype,
        op=int(op),
        set=set_id(process_set),
        name=name,
        prescale=prescale,
        postscale=postscale,
        keep=source,
    )


def reducescatter_async(
    tensor: torch.Tensor,
    name: str | None = None,
    op: int = Average,
    process_set: ProcessSet = global_process_set,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
) -> Handle:
    """This rank's rows of the reduction; as even as possible, first ranks get one more."""
    request = _scatter_request(tensor, name, op, process_set, prescale_factor, postscale_factor)
    part = submit(request)
    return Handle([part], lambda: _library_result(part, tensor.dtype, tensor.device)[0])


def grouped_reducescatter_async(
    tensors: Sequence[torch.Tensor],
    name: str | None = None,
    op: int = Average,
    process_set: ProcessSet = global_process_set,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
) -> Handle:
    requests = [
        _scatter_request(tensor, _part(name, i), op, process_set, prescale_factor, postscale_factor)
        for i, tensor in enumerate(tensors)
    ]
    parts = submit_group(requests)
    return Handle(
        parts,
        lambda: [
            _library_result(part, tensor.dtype, tensor.device)[0]
            for part, tensor in zip(parts, tensors)
        ],
    )


# ---- the rest


def join(device: Any = -1) -> int:
    """This rank has no more data. Waits until all ranks have joined; returns the last one."""
    return core.join()


def barrier(process_set: ProcessSet = global_process_set) -> None:
    core.barrier(process_set)


from .autograd import (  # noqa: E402,F401  (they are made of the functions above)
    allgather,
    allreduce,
    alltoall,
    broadcast,
    grouped_allgather,
    grouped_allreduce,
    grouped_reducescatter,
    reducescatter,
)
