"""PyTorch's element types and reductions in the words of farandole.h."""

from __future__ import annotations

from typing import Any

import torch

from .. import errors

# By torch.dtype; what a version of PyTorch does not have is left out.
DTYPES: dict[torch.dtype, int] = {
    getattr(torch, name): number
    for name, number in {
        "uint8": 0,
        "int8": 1,
        "uint16": 2,
        "int16": 3,
        "int32": 4,
        "int64": 5,
        "float16": 6,
        "bfloat16": 7,
        "float32": 8,
        "float64": 9,
        "bool": 10,
        "complex64": 11,
        "complex128": 12,
    }.items()
    if hasattr(torch, name)
}
_BYTES = DTYPES[torch.uint8]

# By RedOpType's name, which is the same in all versions; its numbers are not.
_REDUCTIONS = {
    "SUM": 0,
    "AVG": 1,
    "MIN": 2,
    "MAX": 3,
    "PRODUCT": 4,
    "BAND": 5,
    "BOR": 6,
    "BXOR": 7,
}
_by_operator: dict[int, int] = {}


def reduction(operator: object) -> int:
    """The number of a ReduceOp."""
    kind = getattr(operator, "op", operator)
    number = _by_operator.get(int(kind))
    if number is not None:
        return number
    name = getattr(kind, "name", str(kind))
    if name not in _REDUCTIONS:
        raise errors.InvalidArgument(
            f"ReduceOp.{name} is not possible with the backend farandole; there are "
            + ", ".join(_REDUCTIONS)
        )
    _by_operator[int(kind)] = _REDUCTIONS[name]
    return _REDUCTIONS[name]


def reducible(tensor: torch.Tensor, what: str) -> int:
    """The number of the tensor's type, which must be one that can be reduced."""
    number = DTYPES.get(tensor.dtype)
    if number is None:
        raise errors.InvalidArgument(f"{what}: tensors of {tensor.dtype} cannot be reduced")
    return number


def movable(tensor: torch.Tensor) -> tuple[int, int]:
    """(type, elements): data that is only moved may be of any type; at worst it is bytes."""
    number = DTYPES.get(tensor.dtype)
    if number is None:
        return _BYTES, tensor.numel() * tensor.element_size()
    return number, tensor.numel()


def reduce_op(opts: Any) -> int:
    """The number of the reduction that options of c10d ask for; a sum without any."""
    if opts is None:
        return 0
    return reduction(getattr(opts, "reduceOp", opts))
