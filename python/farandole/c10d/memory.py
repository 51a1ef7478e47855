"""Tensors as the engine needs them: dense, contiguous, in host memory."""

from __future__ import annotations

import sys
from typing import Any, Sequence

import torch

from .. import errors

_told = False


def dense(tensor: torch.Tensor, what: str) -> torch.Tensor:
    """The tensor itself if it can be used as it is, otherwise a copy that can (see `give_back`)."""
    if tensor.device.type == "cpu" and tensor.layout == torch.strided and tensor.is_contiguous():
        return tensor
    if tensor.layout != torch.strided:
        raise errors.InvalidArgument(
            f"{what}: a tensor of layout {tensor.layout} cannot be used: see to_dense()"
        )
    if tensor.device.type != "cpu":
        _tell(tensor.device)
    copy = torch.empty(tensor.shape, dtype=tensor.dtype, device="cpu")
    return copy.copy_(tensor)


def _tell(device: torch.device) -> None:
    global _told
    if not _told:
        _told = True
        print(f"farandole: tensors on {device} go through host memory", file=sys.stderr, flush=True)


def give_back(tensor: torch.Tensor, used: torch.Tensor) -> None:
    """Copies the result into the caller's tensor, if that was not what the engine used."""
    if used is not tensor:
        tensor.copy_(used)


def one(tensors: Sequence[torch.Tensor], what: str) -> torch.Tensor:
    """Lists of tensors come from the time of several devices per process."""
    if len(tensors) != 1:
        raise errors.InvalidArgument(
            f"{what} takes one tensor per rank, not {len(tensors)}: several devices per process "
            "are not possible with the backend farandole"
        )
    return tensors[0]


def pack(tensors: Sequence[torch.Tensor]) -> torch.Tensor:
    """All elements, one tensor after the other, in new memory."""
    first = tensors[0]
    total = sum(each.numel() for each in tensors)
    packed = torch.empty(total, dtype=first.dtype)
    at = 0
    for each in tensors:
        packed[at : at + each.numel()].view(each.shape).copy_(each.detach())
        at += each.numel()
    return packed


def unpack(packed: torch.Tensor, tensors: Sequence[torch.Tensor]) -> None:
    at = 0
    for each in tensors:
        part = packed[at : at + each.numel()]
        each.detach().copy_(part.view(each.shape))
        at += each.numel()


def check_same(tensors: Sequence[torch.Tensor], like: torch.Tensor, what: str) -> None:
    for each in tensors:
        if each.dtype != like.dtype:
            raise errors.InvalidArgument(
                f"{what}: tensors of {each.dtype} and {like.dtype} in one call"
            )


def counts(tensors: Sequence[torch.Tensor]) -> list[int]:
    return [each.numel() for each in tensors]


def usable(tensor: torch.Tensor) -> bool:
    """Whether the engine can write into it."""
    return tensor.device.type == "cpu" and tensor.layout == torch.strided and tensor.is_contiguous()


def size_of(tensor: torch.Tensor) -> int:
    """The size in bytes."""
    return tensor.numel() * tensor.element_size()


def take(what: str, data: torch.Tensor, output: torch.Tensor) -> None:
    """Copies the library's bytes into a tensor of exactly that size."""
    expected = output.numel() * output.element_size()
    if data.numel() != expected:
        raise errors.Mismatch(
            f"{what}: {data.numel()} bytes arrived for an output of {expected}: the tensors of the "
            "ranks do not fit"
        )
    if expected:
        output.detach().copy_(data.view(output.dtype).view(output.shape))


def take_parts(what: str, result: Any, outputs: Sequence[torch.Tensor]) -> None:
    """As take, one part for each rank."""
    expected = [each.numel() for each in outputs]
    if result.splits != expected:
        raise errors.Mismatch(
            f"{what}: the ranks sent {result.splits} elements, the outputs have {expected}"
        )
    data = result.bytes()
    if data.numel():
        unpack(data.view(outputs[0].dtype), outputs)
