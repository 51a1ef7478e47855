"""Types of elements and kinds of reduction, with the numbers of farandole.h."""

from __future__ import annotations

from enum import IntEnum


class DType(IntEnum):
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
