"""PyTorch's element types and reductions as numbers of farandole.h."""

from __future__ import annotations

from typing import Any

import torch

from .. import errors
from ..dtypes import ReduceOp, types_of

# By torch.dtype; what a version of PyTorch does not have is left out.
DTYPES: dict[torch.dtype, int] = {kind: int(ours) for kind, ours in types_of(torch).items()}
_BYTES = DTYPES[torch.uint8]

# By RedOpType's name, which is the same in all versions; its numbers are not.
_REDUCTIONS: dict[str, int] = {
    "SUM": ReduceOp.SUM,
    "AVG": ReduceOp.AVERAGE,
    "MIN": ReduceOp.MIN,
    "MAX": ReduceOp.MAX,
    "PRODUCT": ReduceOp.PRODUCT,
    "BAND": ReduceOp.BAND,
    "BOR": ReduceOp.BOR,
    "BXOR": ReduceOp.BXOR,
}
_by_operator: dict[int, int] = {}


def reduction(operator: Any) -> int:
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
    number = _by_operator[int(kind)] = int(_REDUCTIONS[name])
    return number


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
        return ReduceOp.SUM
    return reduction(getattr(opts, "reduceOp", opts))
