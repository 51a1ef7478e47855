"""Types of elements and kinds of reduction, with the numbers of farandole.h."""

from __future__ import annotations

from enum import IntEnum
from types import ModuleType
from typing import Any


class DType(IntEnum):
    """The names, in small letters, are those of NumPy, PyTorch and TensorFlow."""

    UINT8 = 0
    INT8 = 1
    UINT16 = 2
    INT16 = 3
    INT32 = 4
    INT64 = 5
    FLOAT16 = 6
    BFLOAT16 = 7
    FLOAT32 = 8
    FLOAT64 = 9
    BOOL = 10
    COMPLEX64 = 11
    COMPLEX128 = 12


class ReduceOp(IntEnum):
    SUM = 0
    AVERAGE = 1
    MIN = 2
    MAX = 3
    PRODUCT = 4
    BAND = 5
    BOR = 6
    BXOR = 7
    ADASUM = 8


# Horovod's names, which the adapters have, too.
Average = ReduceOp.AVERAGE
Sum = ReduceOp.SUM
Adasum = ReduceOp.ADASUM
Min = ReduceOp.MIN
Max = ReduceOp.MAX
Product = ReduceOp.PRODUCT


def types_of(module: ModuleType) -> dict[Any, DType]:
    """The element types that a framework has, as keys: those of its attributes named like ours."""
    named = ((getattr(module, kind.name.lower(), None), kind) for kind in DType)
    return {theirs: kind for theirs, kind in named if theirs is not None}
