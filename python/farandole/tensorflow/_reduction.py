"""What the nodes of a reduction have in common."""

from __future__ import annotations

import contextlib
import threading
from typing import Any, Iterator, NamedTuple

_here = threading.local()

# Which thread waits for a reduction (ops/step.h has the same numbers).
NOBODY = 0  # gradients are many, and travel while others are made
PROGRAM = 1
LAST = 2  # the last gradients of a step: nothing else is left to do


@contextlib.contextmanager
def awaited_by(whom: int) -> Iterator[None]:
    """Which thread waits for the reductions made within."""
    before = getattr(_here, "awaited", PROGRAM)
    _here.awaited = whom
    try:
        yield
    finally:
        _here.awaited = before


class Reduction(NamedTuple):
    """How to reduce, and among whom."""

    op: int
    prescale: float
    postscale: float
    set: int

    def attributes(self, name: str) -> dict[str, Any]:
        # Attributes of nodes are single precision; these are doubles and go as text.
        return {
            "tensor_name": name,
            "process_set": self.set,
            "reduce_op": int(self.op),
            "prescale": repr(float(self.prescale)),
            "postscale": repr(float(self.postscale)),
            "awaited_by": getattr(_here, "awaited", PROGRAM),
        }
