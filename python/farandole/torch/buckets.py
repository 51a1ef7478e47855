"""Buckets: gradients side by side in shared memory, reduced as one while backward runs.

Layout of a bucket: the gradients, each aligned to 64 bytes, then two numbers for each of them, its
marks: whether some rank has a gradient at all, and whether it is sparse. After the reduction every
rank knows from the marks which parameters no rank used (their gradient stays None) and which are
sparse.
"""

from __future__ import annotations

from typing import Any, Sequence

import torch

from .. import core
from ..errors import InvalidArgument, Mismatch
from . import _tensors

_ALIGNMENT = 64
# Smaller: reductions start earlier; larger: there are fewer of them.
BUCKET_BYTES = 2 << 20


class Slot:
    """One parameter: its place in a bucket, and how far its gradient is."""

    __slots__ = (
        "bucket",
        "direct",
        "hook",
        "name",
        "parameter",
        "passes",
        "pending",
        "place",
        "ready",
        "sparse",
        "used",
        "version",
    )

    def __init__(self, parameter: torch.Tensor, name: str) -> None:
        self.parameter = parameter
        self.name = name
        self.bucket: Bucket | None = None
        self.place: Any = None  # a tensor over the bucket's memory
        self.direct = False  # p.grad may be the place itself
        self.passes = 0  # backward passes since the last step
        self.ready = False  # the gradient is complete
        self.version: int | None = None  # of p.grad when its reduction began
        self.used = False  # p.grad was not None when it was ready
        self.sparse = False  # reduced by allgather, outside the buckets
        self.pending: Any = None  # a reduction of this parameter alone
        self.hook: Any = None

    def start_over(self) -> None:
        self.passes = 0
        self.ready = False
        self.used = False
        self.version = None
        self.pending = None


class Bucket:
    """Slots of one dtype, and the operation that reduces them."""

    def __init__(self, name: str, wire: torch.dtype) -> None:
        self.name = name
        self.wire = wire
        self.slots: list[Slot] = []
        self.missing = 0  # slots that are not ready
        self.handle: core.Handle | None = None
        self.memory: core.SharedBuffer | None = None
        self.marks: Any = None

    def allocate(self) -> None:
        """Gives every slot its place. The memory lives as long as one of them does."""
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
            on_host = slot.parameter.device.type == "cpu"
            slot.direct = on_host and slot.parameter.dtype == self.wire
            if not on_host:
                _tensors.tell_of_device(slot.parameter.device)
        self.missing = len(self.slots)
        self._all_used = torch.tensor([1.0, 0.0] * len(self.slots)).to(self.wire)

    def move_in(self, sparse_as_dense: bool) -> None:
        """All gradients are complete: brings them into their places, and points p.grad there."""
        self.missing = 0
        places, grads, moved = [], [], []
        for slot in self.slots:
            grad = slot.parameter.grad
            place = slot.place
            slot.used = True
            if grad is place:
                slot.version = place._version
                continue
            if grad is not None and grad.is_sparse and sparse_as_dense:
                slot.parameter.grad = grad = grad.to_dense()
            if grad is None:
                slot.used = False
                place.zero_()
            elif grad.is_sparse:
                slot.used = False
                slot.sparse = True
                place.zero_()
            elif slot.direct and grad.dtype != place.dtype:
                raise InvalidArgument(
                    f"{slot.name}: the parameter became {grad.dtype} after the optimizer was "
                    "wrapped: convert the model first",
                    tensor=slot.name,
                )
            else:
                places.append(place)
                grads.append(grad)
                moved.append(slot)
        _copy_all(places, grads)
        for slot in moved:
            if slot.direct:
                slot.parameter.grad = slot.place
                slot.version = slot.place._version

    def submit(
        self, op: int, prescale: float, postscale: float, process_set: Any, last: bool
    ) -> None:
        """Starts the reduction of what has been moved in. After the last one, the thread waits
        soon: no other needs to be woken to drive it."""
        assert self.memory is not None
        if all(slot.used for slot in self.slots):
            self.marks.copy_(self._all_used)
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
            will_wait=last,
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

    def take_out(self) -> list[Slot]:
        """Results into p.grad, or None where no rank had one; returns slots that are sparse."""
        marks = self.marks.real if self.marks.is_complex() else self.marks
        numbers = marks.tolist()
        sparse: list[Slot] = []
        places, grads = [], []
        for slot, used, is_sparse in zip(self.slots, numbers[::2], numbers[1::2]):
            parameter = slot.parameter
            if is_sparse > 0:
                sparse.append(slot)
            elif not used > 0:
                parameter.grad = None
            elif slot.direct:
                if parameter.grad is not slot.place:
                    parameter.grad = slot.place
            else:
                if parameter.grad is None:
                    parameter.grad = torch.empty_like(parameter)
                places.append(slot.place)
                grads.append(parameter.grad)
        _copy_all(grads, places)
        return sparse


def _copy_all(targets: list[torch.Tensor], sources: list[torch.Tensor]) -> None:
    """One call for all of them, where PyTorch has it."""
    if len(targets) > 1 and hasattr(torch, "_foreach_copy_"):
        torch._foreach_copy_(targets, sources)
        return
    for target, source in zip(targets, sources):
        target.copy_(source)


def _place(parameter: torch.Tensor, view: Any, offset: int, wire: torch.dtype) -> torch.Tensor:
    """A tensor of the parameter's shape, with the strides that autograd wants for a gradient."""
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
) -> list[Bucket]:
    """Buckets for the slots: those of a group together, the others last ones first, as backward
    produces their gradients."""
    buckets: list[Bucket] = []

    def new(wire: torch.dtype) -> Bucket:
        buckets.append(Bucket(f"{prefix}.{len(buckets)}", wire))
        return buckets[-1]

    grouped = set()
    for group in groups:
        of_wire: dict[torch.dtype, Bucket] = {}
        for slot in group:
            grouped.add(id(slot))
            wire = wire_of(slot.parameter)
            bucket = of_wire.get(wire) or new(wire)
            of_wire[wire] = bucket
            bucket.slots.append(slot)
    open_: dict[torch.dtype, tuple[Bucket, int]] = {}
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
