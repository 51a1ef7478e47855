"""Buckets: gradients side by side in memory that the ranks share, reduced as one while backward runs.

Layout of a bucket: the gradients, each aligned to 64 bytes, then two numbers for each of them, its marks:
whether some rank has a gradient at all, and whether it is sparse. After the reduction every rank knows
from the marks which parameters nobody used (their gradient stays None) and which are sparse.
"""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Sequence, Tuple

import torch

from .. import core
from ..errors import Mismatch
from . import _tensors

_ALIGNMENT = 64
# Smaller: reductions start earlier; larger: there are fewer of them.
BUCKET_BYTES = 2 << 20


class Slot:
    """One parameter: its place in a bucket, and how far its gradient is."""

    __slots__ = (
        "parameter",
        "name",
        "bucket",
        "place",
        "direct",
        "passes",
        "ready",
        "version",
        "used",
        "sparse",
        "pending",
        "hook",
    )

    def __init__(self, parameter: torch.Tensor, name: str) -> None:
        self.parameter = parameter
        self.name = name
        self.bucket: Optional["Bucket"] = None
        self.place: Any = None  # a tensor over the bucket's memory
        self.direct = False  # p.grad may be the place itself
        self.passes = 0  # backward passes since the last step
        self.ready = False  # the gradient is in its place
        self.version = 0  # of p.grad when it was ready
        self.used = False  # p.grad was not None then
        self.sparse = False  # reduced by allgather, outside of buckets
        self.pending: Any = None  # a reduction of this parameter alone
        self.hook: Any = None

    def start_over(self) -> None:
        self.passes = 0
        self.ready = False
        self.used = False
        self.pending = None


class Bucket:
    """Slots of one dtype, and the operation that reduces them."""

    def __init__(self, name: str, wire: torch.dtype) -> None:
        self.name = name
        self.wire = wire
        self.slots: List[Slot] = []
        self.missing = 0  # slots that are not ready
        self.handle: Optional[core.Handle] = None
        self.memory: Optional[core.SharedBuffer] = None
        self.marks: Any = None

    def allocate(self) -> None:
        """Gives every slot its place. The memory lives as long as one of them is somebody's grad."""
        width = torch.empty((), dtype=self.wire).element_size()
        offsets = []
        end = 0
        for slot in self.slots:
            offsets.append(end)
            nbytes = slot.parameter.numel() * width
            end += (nbytes + _ALIGNMENT - 1) // _ALIGNMENT * _ALIGNMENT
        marks = 2 * len(self.slots)
        self.memory = core.SharedBuffer(end + marks * width)
        self.count = end // width + marks
        view = self.memory.view()
        self.dtype = _tensors.dtype_of(torch.empty((), dtype=self.wire), self.name)
        self.marks = torch.frombuffer(view, dtype=self.wire, offset=end, count=marks)
        for slot, offset in zip(self.slots, offsets):
            slot.bucket = self
            slot.place = _place(slot.parameter, view, offset, self.wire)
            slot.direct = slot.parameter.device.type == "cpu" and slot.parameter.dtype == self.wire
        self.missing = len(self.slots)

    def submit(self, op: int, prescale: float, postscale: float, process_set: Any) -> None:
        """All slots are ready: starts the reduction."""
        assert self.memory is not None
        if all(slot.used for slot in self.slots):
            self.marks[::2] = 1
            self.marks[1::2] = 0
        else:
            flat = []
            for slot in self.slots:
                flat += [1.0 if slot.used else 0.0, 1.0 if slot.sparse else 0.0]
            self.marks.copy_(torch.tensor(flat, dtype=self.wire))
        self.handle = core.allreduce(
            self.memory.address,
            self.memory.address,
            self.count,
            self.dtype,
            op,
            name=self.name,
            process_set=process_set,
            prescale=prescale,
            postscale=postscale,
            keep=self.memory,
        )

    def wait(self) -> None:
        assert self.handle is not None
        try:
            self.handle.wait()
        except Mismatch as error:
            raise Mismatch(
                f"{error}. This bucket holds the gradients of {self._contents()}: all ranks must "
                "give the same parameters to the optimizer, in the same order",
                error.rank,
                error.host,
                error.tensor,
            ) from None
        finally:
            self.handle = None
            self.missing = len(self.slots)

    def _contents(self) -> str:
        shown = [f"{slot.name} {tuple(slot.parameter.shape)}" for slot in self.slots[:4]]
        more = len(self.slots) - len(shown)
        return ", ".join(shown) + (f" and {more} more" if more else "")

    def outcome(self) -> List[Tuple[bool, bool]]:
        """(used by some rank, sparse on some rank) for each slot."""
        marks = self.marks.real if self.marks.is_complex() else self.marks
        numbers = marks.float().tolist()
        return [(used > 0, sparse > 0) for used, sparse in zip(numbers[::2], numbers[1::2])]


def _place(parameter: torch.Tensor, view: Any, offset: int, wire: torch.dtype) -> torch.Tensor:
    """A tensor of the parameter's shape, with the strides that autograd wants a gradient to have."""
    count = parameter.numel()
    if count == 0:
        return torch.empty(parameter.shape, dtype=wire)
    flat = torch.frombuffer(view, dtype=wire, offset=offset, count=count)
    if parameter.is_contiguous() or parameter.device.type != "cpu":
        return flat.view(parameter.shape)
    strides = torch.empty_like(parameter, device="cpu").stride()  # dense, in the same order
    dense = sorted(zip(strides, parameter.shape))
    expected = 1
    for stride, size in dense:
        if size == 1:
            continue
        if stride != expected:
            return flat.view(parameter.shape)
        expected *= size
    return flat.as_strided(parameter.shape, strides)


def fill(
    slots: Sequence[Slot],
    groups: Sequence[Sequence[Slot]],
    prefix: str,
    wire_of: Any,
    limit: int = BUCKET_BYTES,
) -> List[Bucket]:
    """Buckets for the slots: those of a group together, the others last ones first, as backward
    produces their gradients."""
    buckets: List[Bucket] = []

    def new(wire: torch.dtype) -> Bucket:
        buckets.append(Bucket(f"{prefix}.{len(buckets)}", wire))
        return buckets[-1]

    grouped = set()
    for group in groups:
        of_wire: Dict[torch.dtype, Bucket] = {}
        for slot in group:
            grouped.add(id(slot))
            wire = wire_of(slot.parameter)
            bucket = of_wire.get(wire) or new(wire)
            of_wire[wire] = bucket
            bucket.slots.append(slot)
    open_: Dict[torch.dtype, Tuple[Bucket, int]] = {}
    for slot in reversed(slots):
        if id(slot) in grouped:
            continue
        wire = wire_of(slot.parameter)
        bucket, nbytes = open_.get(wire) or (new(wire), 0)
        bucket.slots.append(slot)
        nbytes += slot.parameter.numel() * slot.parameter.element_size()
        if nbytes >= limit:
            open_.pop(wire, None)
        else:
            open_[wire] = (bucket, nbytes)
    for bucket in buckets:
        bucket.allocate()
    return buckets
