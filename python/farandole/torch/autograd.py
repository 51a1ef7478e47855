"""The collective operations that can be differentiated.

As usual in data-parallel training, the loss is the average over the ranks: the gradient of what
went to all of them is averaged.
"""

from __future__ import annotations

from typing import Any, Sequence

import torch

from ..process_sets import ProcessSet, global_process_set
from . import mpi_ops
from .compression import Compression
from .mpi_ops import Average, Splits, Sum


class _Allreduce(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, tensor: Any, name: Any, op: Any, prescale: Any, postscale: Any, process_set: Any
    ) -> Any:
        ctx.rest = (op, prescale, postscale, process_set)
        return mpi_ops.reduce_and_wait(tensor, False, name, op, prescale, postscale, process_set)

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        op, prescale, postscale, process_set = ctx.rest
        reduced = allreduce(
            grad,
            op=op,
            prescale_factor=prescale,
            postscale_factor=postscale,
            process_set=process_set,
        )
        return reduced, None, None, None, None, None


def allreduce(
    tensor: torch.Tensor,
    average: bool | None = None,
    name: str | None = None,
    compression: Any = Compression.none,
    op: int | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> torch.Tensor:
    """The reduction (the average, unless `op` says otherwise) over all ranks, in a new tensor."""
    op = mpi_ops.handle_average_backwards_compatibility(op, average)
    small, ctx = compression.compress(tensor)
    reduced = _Allreduce.apply(small, name, op, prescale_factor, postscale_factor, process_set)
    return compression.decompress(reduced, ctx)


class _GroupedAllreduce(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, name: Any, op: Any, prescale: Any, postscale: Any, process_set: Any, *tensors: Any
    ) -> Any:
        ctx.rest = (op, prescale, postscale, process_set)
        outputs = mpi_ops.grouped_allreduce_async(
            tensors, None, name, op, prescale, postscale, process_set
        ).wait()
        return tuple(outputs)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        op, prescale, postscale, process_set = ctx.rest
        reduced = grouped_allreduce(
            list(grads),
            op=op,
            prescale_factor=prescale,
            postscale_factor=postscale,
            process_set=process_set,
        )
        return (None, None, None, None, None, *reduced)


def grouped_allreduce(
    tensors: Sequence[torch.Tensor],
    average: bool | None = None,
    name: str | None = None,
    compression: Any = Compression.none,
    op: int | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> list[torch.Tensor]:
    op = mpi_ops.handle_average_backwards_compatibility(op, average)
    small = [compression.compress(tensor) for tensor in tensors]
    reduced = _GroupedAllreduce.apply(
        name, op, prescale_factor, postscale_factor, process_set, *[each for each, _ in small]
    )
    return [compression.decompress(each, ctx) for each, (_, ctx) in zip(reduced, small)]


class _Allgather(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, tensor: Any, name: Any, process_set: Any) -> Any:
        ctx.shape = tensor.shape
        ctx.process_set = process_set
        return mpi_ops.gather_and_wait(tensor, name, process_set)

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return _rows_of(grad, ctx.shape, ctx.process_set), None, None


def _rows_of(grad: torch.Tensor, shape: torch.Size, process_set: ProcessSet) -> torch.Tensor:
    """This rank's rows of the averaged gradient of what was gathered."""
    rows = shape[0] if len(shape) else 1
    counts = mpi_ops.gather_and_wait(torch.tensor([rows]), None, process_set).tolist()
    averaged = mpi_ops.reduce_and_wait(grad, False, None, Average, 1.0, 1.0, process_set)
    start = sum(counts[: process_set.rank()])
    return averaged.narrow(0, start, rows).reshape(shape)


def allgather(
    tensor: torch.Tensor,
    name: str | None = None,
    process_set: ProcessSet = global_process_set,
) -> torch.Tensor:
    """The tensors of all ranks, concatenated; first dimensions may differ."""
    return _Allgather.apply(tensor, name, process_set)


class _GroupedAllgather(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, name: Any, process_set: Any, *tensors: Any) -> Any:
        ctx.shapes = [tensor.shape for tensor in tensors]
        ctx.process_set = process_set
        return tuple(mpi_ops.grouped_allgather_async(tensors, name, process_set).wait())

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        parts = [_rows_of(grad, shape, ctx.process_set) for grad, shape in zip(grads, ctx.shapes)]
        return (None, None, *parts)


def grouped_allgather(
    tensors: Sequence[torch.Tensor],
    name: str | None = None,
    process_set: ProcessSet = global_process_set,
) -> list[torch.Tensor]:
    return list(_GroupedAllgather.apply(name, process_set, *tensors))


class _Broadcast(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, tensor: Any, root_rank: Any, name: Any, process_set: Any) -> Any:
        ctx.root_rank = root_rank
        ctx.process_set = process_set
        return mpi_ops.broadcast_async(tensor, root_rank, name, process_set).wait()

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        averaged = allreduce(grad, op=Average, process_set=ctx.process_set)
        if mpi_ops.core.rank() != ctx.root_rank:
            averaged = torch.zeros_like(averaged)
        return averaged, None, None, None


def broadcast(
    tensor: torch.Tensor,
    root_rank: int,
    name: str | None = None,
    process_set: ProcessSet = global_process_set,
) -> torch.Tensor:
    """root_rank's values in a new tensor; root_rank is a rank of the world."""
    return _Broadcast.apply(tensor, root_rank, name, process_set)


class _Alltoall(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, tensor: Any, splits: Any, name: Any, process_set: Any) -> Any:
        ctx.process_set = process_set
        if splits is None:
            ctx.received = None
            return mpi_ops.alltoall_async(tensor, None, name, process_set).wait()
        output, received = mpi_ops.alltoall_async(tensor, splits, name, process_set).wait()
        ctx.received = received.cpu()
        ctx.mark_non_differentiable(received)
        return output, received

    @staticmethod
    def backward(ctx: Any, grad: Any, *_: Any) -> Any:
        back = mpi_ops.alltoall_async(grad, ctx.received, None, ctx.process_set).wait()
        return (back if ctx.received is None else back[0]), None, None, None


def alltoall(
    tensor: torch.Tensor,
    splits: Splits = None,
    name: str | None = None,
    process_set: ProcessSet = global_process_set,
) -> Any:
    """splits[i] rows go to member i. A tensor, with splits also the rows received from each."""
    return _Alltoall.apply(tensor, splits, name, process_set)


class _Reducescatter(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, tensor: Any, name: Any, op: Any, process_set: Any, prescale: Any, postscale: Any
    ) -> Any:
        ctx.rest = (op, process_set, prescale * postscale)
        return mpi_ops.reducescatter_async(
            tensor, name, op, process_set, prescale, postscale
        ).wait()

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return _gathered(grad, *ctx.rest), None, None, None, None, None


def _gathered(grad: torch.Tensor, op: int, process_set: ProcessSet, scale: float) -> torch.Tensor:
    if op == Sum:
        scale *= process_set.size()
    if scale != 1.0:
        grad = grad * scale
    return mpi_ops.gather_and_wait(grad, None, process_set)


def reducescatter(
    tensor: torch.Tensor,
    name: str | None = None,
    compression: Any = Compression.none,
    op: int = Average,
    process_set: ProcessSet = global_process_set,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
) -> torch.Tensor:
    """This rank's rows of the reduction; as even as possible, first ranks get one more."""
    small, ctx = compression.compress(tensor)
    reduced = _Reducescatter.apply(small, name, op, process_set, prescale_factor, postscale_factor)
    return compression.decompress(reduced, ctx)


class _GroupedReducescatter(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, name: Any, op: Any, process_set: Any, prescale: Any, postscale: Any, *tensors: Any
    ) -> Any:
        ctx.rest = (op, process_set, prescale * postscale)
        outputs = mpi_ops.grouped_reducescatter_async(
            tensors, name, op, process_set, prescale, postscale
        ).wait()
        return tuple(outputs)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return (None, None, None, None, None, *[_gathered(grad, *ctx.rest) for grad in grads])


def grouped_reducescatter(
    tensors: Sequence[torch.Tensor],
    name: str | None = None,
    compression: Any = Compression.none,
    op: int = Average,
    process_set: ProcessSet = global_process_set,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
) -> list[torch.Tensor]:
    small = [compression.compress(tensor) for tensor in tensors]
    reduced = _GroupedReducescatter.apply(
        name, op, process_set, prescale_factor, postscale_factor, *[each for each, _ in small]
    )
    return [compression.decompress(each, ctx) for each, (_, ctx) in zip(reduced, small)]
