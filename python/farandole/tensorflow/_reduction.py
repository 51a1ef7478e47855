"""What the nodes of a reduction have in common."""

from __future__ import annotations

import contextlib
import threading
from typing import Any, Dict, Iterator, NamedTuple

_here = threading.local()


@contextlib.contextmanager
def nobody_waits() -> Iterator[None]:
    """What is made within is not urgent: gradients are many, and travel while others are made."""
    before = getattr(_here, "urgent", True)
    _here.urgent = False
    try:
        yield
    finally:
        _here.urgent = before


class Reduction(NamedTuple):
    """How to reduce, and among whom."""

    op: int
    prescale: float
    postscale: float
    set: int

    def attributes(self, name: str) -> Dict[str, Any]:
        # Attributes of nodes are single precision; these are doubles and go as text.
        return {
            "tensor_name": name,
            "process_set": self.set,
            "reduce_op": int(self.op),
            "prescale": repr(float(self.prescale)),
            "postscale": repr(float(self.postscale)),
            "urgent": getattr(_here, "urgent", True),
        }
