"""What the nodes of a reduction have in common."""

from __future__ import annotations

from typing import Any, Dict, NamedTuple


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
        }
