"""Tensors as the core sees them: dtype, address, shape. Others go through host memory."""

from __future__ import annotations

import sys
from typing import Any

import torch

from .. import core
from ..dtypes import DType, types_of
from ..errors import InvalidArgument

_DTYPES: dict[torch.dtype, DType] = types_of(torch)

# Types without arithmetic here can still be moved, as another type of the same width.
_MOVED: dict[torch.dtype, DType] = {}
for _name, _kind in (
    ("uint32", DType.INT32),
    ("uint64", DType.INT64),
    ("complex32", DType.INT32),
    ("float8_e4m3fn", DType.UINT8),
    ("float8_e5m2", DType.UINT8),
    ("float8_e4m3fnuz", DType.UINT8),
    ("float8_e5m2fnuz", DType.UINT8),
    ("float8_e8m0fnu", DType.UINT8),
):
    if hasattr(torch, _name):
        _MOVED[getattr(torch, _name)] = _kind

_told_of_devices = False


def dtype_of(tensor: torch.Tensor, what: str, moved: bool = False) -> DType:
    kind = _DTYPES.get(tensor.dtype)
    if kind is None and moved:
        kind = _MOVED.get(tensor.dtype)
    if kind is None:
        possible = ", ".join(str(each)[6:] for each in _DTYPES)
        raise InvalidArgument(
            f"{what}: tensors of {tensor.dtype} are not supported; possible are {possible}",
            tensor=what,
        )
    return kind


def check(tensor: Any, what: str) -> None:
    """Only dense tensors with memory pass."""
    if not isinstance(tensor, torch.Tensor):
        raise TypeError(f"{what}: a torch.Tensor is needed, not {type(tensor).__name__}")
    if tensor.layout != torch.strided:
        remedy = (
            "use sparse_allreduce_async(), or to_dense()"
            if tensor.layout == torch.sparse_coo
            else "use to_dense()"
        )
        raise InvalidArgument(
            f"{what}: the tensor's layout is {tensor.layout}, a dense one is needed: {remedy}",
            tensor=what,
        )
    if tensor.device.type == "meta":
        raise InvalidArgument(f"{what}: a tensor on the meta device has no data", tensor=what)


def tell_of_device(device: torch.device) -> None:
    """Warns once that the tensor is copied through host memory."""
    global _told_of_devices
    if _told_of_devices:
        return
    _told_of_devices = True
    if not core.is_initialised() or core.rank() == 0:
        sys.stderr.write(f"farandole: tensors on {device.type} go through host memory\n")


def host(tensor: torch.Tensor) -> torch.Tensor:
    """The same values, contiguous in host memory; the tensor itself where it is that already."""
    with torch.no_grad():
        found = tensor.detach()
        if found.device.type != "cpu":
            tell_of_device(found.device)
            found = found.to("cpu")
        if found.is_complex() and found.is_conj():
            found = found.resolve_conj()
        if found.is_neg():
            found = found.resolve_neg()
        return found.contiguous()


def empty_host(like: torch.Tensor, shape: tuple[int, ...] | None = None) -> torch.Tensor:
    return torch.empty(tuple(like.shape) if shape is None else shape, dtype=like.dtype)


def from_view(view: Any, dtype: torch.dtype, shape: tuple[int, ...]) -> torch.Tensor:
    """A tensor over memory that `view` keeps alive."""
    if len(view) == 0:
        return torch.empty(shape, dtype=dtype)
    return torch.frombuffer(view, dtype=dtype).view(shape)


# Older versions always check, newer ones when asked.
_CHECKED: dict[str, Any] = {}
if hasattr(torch.sparse, "check_sparse_tensor_invariants"):
    _CHECKED["check_invariants"] = True


def sparse(indices: torch.Tensor, values: torch.Tensor, size: Any) -> torch.Tensor:
    """A sparse tensor of what other ranks sent: indices outside it are an error."""
    return torch.sparse_coo_tensor(indices, values, size, **_CHECKED)
