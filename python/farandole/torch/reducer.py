"""Reducer: reduces the gradients of an optimizer's parameters while backward() runs.

A hook on each parameter counts gradients. When all gradients of a bucket are ready, they are copied
in, p.grad points there, and the bucket is reduced at once. synchronize() reduces the rest.
"""

from __future__ import annotations

import contextlib
import hashlib
import threading
import time
import weakref
from typing import Any, Callable, Sequence

import torch

from .. import core, objects
from ..errors import Error, InvalidArgument, Mismatch
from ..process_sets import ProcessSet
from . import _tensors, mpi_ops
from .buckets import Bucket, Slot, fill

_numbers: dict[int, int] = {}
# Other ranks may have failed in the same way, and never start what this one waits for.
_PATIENCE_SECONDS = 2.0


def _next_number() -> int:
    """Reducers are matched between ranks by the order in which they are made since init()."""
    generation = core.generation()
    _numbers[generation] = _numbers.get(generation, -1) + 1
    return _numbers[generation]


def after_accumulation(parameter: torch.Tensor, action: Callable[[], None]) -> Any:
    """Calls `action` whenever backward() has added to parameter.grad.

    Returns what must be kept; the last of it has remove().
    """
    if hasattr(parameter, "register_post_accumulate_grad_hook"):
        return (parameter.register_post_accumulate_grad_hook(lambda _: action()),)
    # The tensor knows its accumulator only weakly: the holder of the hook must hold it, too.
    with torch.enable_grad():
        accumulator = parameter.expand_as(parameter).grad_fn.next_functions[0][0]

    def hook(*_: Any) -> None:
        if parameter.grad is not None:  # it also runs when there was nothing to add
            action()

    return accumulator, accumulator.register_hook(hook)


class Reducer:
    """Owned by one optimizer; hooks hold it weakly. Hooks may run on several threads."""

    def __init__(
        self,
        op: int,
        compression: Any,
        passes: int,
        predivide: float,
        sparse_as_dense: bool,
        process_set: ProcessSet,
    ) -> None:
        self.op = op
        self.compression = compression
        self.passes = passes
        self.predivide = predivide
        self.sparse_as_dense = sparse_as_dense
        self.process_set = process_set
        self.slots: list[Slot] = []
        self.by_id: dict[int, Slot] = {}
        self.groups: list[list[Slot]] = []
        self.buckets: list[Bucket] = []
        self.synchronized = False
        self._begun = False  # whether a gradient has arrived since the last step
        self._lock = threading.RLock()
        self._generation = core.generation()
        self._prefix = f"gradients.{_next_number()}"
        self._rebuilt = 0
        self._compared = False  # whether all ranks are known to have the same parameters

    # ---- Parameters and buckets

    def add(self, named: Sequence[Any], groups: Sequence[Sequence[torch.Tensor]] = ()) -> None:
        """(name, parameter) pairs, the same in the same order on all ranks."""
        fresh = []
        for name, parameter in named:
            _tensors.check(parameter, name)
            _tensors.dtype_of(parameter, name)
            slot = Slot(parameter, name)
            self.slots.append(slot)
            self.by_id[id(parameter)] = slot
            fresh.append(slot)
            self._watch(slot)
        members = [[self.by_id[id(p)] for p in group if id(p) in self.by_id] for group in groups]
        self.groups += members
        self._fill(fresh, members)

    def _watch(self, slot: Slot) -> None:
        me = weakref.ref(self)

        def action() -> None:
            reducer = me()
            if reducer is not None:
                reducer.gradient_ready(slot)

        slot.hook = after_accumulation(slot.parameter, action)

    def __del__(self) -> None:
        # Hooks and what they hold would keep each other alive inside PyTorch.
        try:
            for slot in self.slots:
                slot.hook[-1].remove()
        except Exception:  # the interpreter may be half gone
            pass

    def _wire(self, parameter: torch.Tensor) -> torch.dtype:
        wire = getattr(self.compression, "wire", None)
        return wire if wire is not None and parameter.is_floating_point() else parameter.dtype

    def _custom(self) -> bool:
        """A compression class of the user's works on one tensor at a time."""
        return not hasattr(self.compression, "wire")

    def _fill(self, slots: Sequence[Slot], groups: Sequence[Sequence[Slot]]) -> None:
        if self._custom():
            return
        dense = [slot for slot in slots if not slot.sparse]
        kept = [[slot for slot in group if not slot.sparse] for group in groups]
        self._compared = False
        prefix = f"{self._prefix}.{self._rebuilt}"
        self._rebuilt += 1
        self.buckets += fill(dense, [group for group in kept if group], prefix, self._wire)

    def _rebuild(self) -> None:
        """Makes all buckets again: after another init(), or without parameters that are sparse."""
        self.buckets = []
        for slot in self.slots:
            slot.bucket = None
        self._fill(self.slots, self.groups)

    def _check_generation(self) -> None:
        if self._generation == core.generation() or not core.is_initialised():
            return
        self._generation = core.generation()
        self._prefix = f"gradients.{_next_number()}"
        self._rebuilt = 0
        for slot in self.slots:
            slot.start_over()
        self._rebuild()

    # ---- During backward

    def gradient_ready(self, slot: Slot) -> None:
        """Runs inside backward(), after the gradient has been added to p.grad. Must be quick."""
        with self._lock:
            if not self._begun:
                self._begin()
            slot.passes += 1
            if slot.passes != self.passes:
                if slot.passes > self.passes:
                    raise self._too_often(slot)
                return
            slot.ready = slot.used = True
            bucket = slot.bucket
            if bucket is None:
                self._start_alone(slot, slot.parameter.grad)
                return
            bucket.missing -= 1
            if bucket.missing == 0:
                self._submit(bucket)

    def _begin(self) -> None:
        """The first gradient since the last step."""
        self._check_generation()
        self._begun = True
        self.synchronized = False

    def _too_often(self, slot: Slot) -> InvalidArgument:
        return InvalidArgument(
            f"rank {core.rank()}: {slot.name} got a gradient for the {slot.passes}. time since the "
            "last step(): call step() after every backward(), or give backward_passes_per_step "
            "the number of backward() calls per step()",
            tensor=slot.name,
        )

    def _complete(self) -> None:
        """No more gradients will arrive: the remaining buckets start with those that have."""
        for slot in self.slots:
            if not slot.ready and slot.bucket is None:
                self._start_alone(slot, slot.parameter.grad)
        for bucket in self.buckets:
            if bucket.missing:
                self._submit(bucket)

    def _scales(self) -> Any:
        if self.op == mpi_ops.Average and self.predivide != 1.0:
            return 1.0 / self.predivide, self.predivide
        return 1.0, 1.0

    def _submit(self, bucket: Bucket) -> None:
        with torch.no_grad():
            bucket.move_in(self.sparse_as_dense)
        prescale, postscale = self._scales()
        last = not any(each.missing for each in self.buckets)
        bucket.submit(self.op, prescale, postscale, self.process_set, last)

    def _start_alone(self, slot: Slot, grad: torch.Tensor | None) -> None:
        name = f"{self._prefix}.{slot.name}"
        if self.sparse_as_dense and grad is not None and grad.is_sparse:
            grad = grad.to_dense()
        if slot.sparse:
            # All ranks must have whole rows; zero_grad() may have left something else.
            if grad is None or (grad.is_sparse and grad._nnz() == 0):
                grad = _no_rows(slot.parameter)
            elif not grad.is_sparse or grad.sparse_dim() != 1:
                grad = grad.to_dense().to_sparse(1)
            slot.pending = mpi_ops.sparse_allreduce_async(grad, name, self.op, self.process_set)
            return
        if grad is None:
            grad = torch.zeros_like(slot.parameter)
        small, ctx = self.compression.compress(grad)
        prescale, postscale = self._scales()
        handle = mpi_ops.allreduce_async_(
            small, None, name, self.op, prescale, postscale, self.process_set
        )
        slot.pending = lambda: self.compression.decompress(handle.wait(), ctx)

    # ---- Before the step

    def in_flight(self) -> bool:
        """Whether gradients have been produced that no synchronize() has waited for."""
        return any(slot.ready for slot in self.slots)

    def forget_passes(self) -> None:
        """Gradients that were collected so far are cleared."""
        for slot in self.slots:
            slot.passes = 0

    def synchronize(self) -> None:
        """Reduces what is not reduced yet; then every p.grad is the same on all ranks."""
        with self._lock:
            if self.synchronized:
                return
            if not self._begun:
                self._begin()
            self._check_untouched()
            if not self._compared:
                self._compare()
            self._complete()
            self._finish()
            self.synchronized = True

    def _compare(self) -> None:
        """Buckets of different parameters can have the same size: before the first step, all ranks
        compare what they have."""
        mine = [(s.name, tuple(s.parameter.shape), str(s.parameter.dtype)) for s in self.slots]
        digest = hashlib.sha256(repr(mine).encode()).digest()
        name = f"{self._prefix}.{self._rebuilt}.parameters"
        digests = objects.allgather_object(digest, name, self.process_set)
        if len(set(digests)) > 1:
            lists = objects.allgather_object(mine, name + ".list", self.process_set)
            self._abandon()
            raise Mismatch(_difference(lists, core.members(self.process_set)))
        self._compared = True

    def _check_untouched(self) -> None:
        """Refuses gradients that were changed during their reduction: neither old nor new."""
        for slot in self.slots:
            grad = slot.parameter.grad
            if not slot.ready or not slot.used:
                continue
            if grad is None:
                change = "cleared"
            elif slot.version is not None and grad._version != slot.version:
                change = "changed"
            else:
                continue
            self._abandon()
            raise InvalidArgument(
                f"rank {core.rank()}: the gradient of {slot.name} was {change} between backward() "
                "and step(), while it was being reduced: clear gradients before backward(); to "
                "change them (clipping, unscaling) call optimizer.synchronize() first, then "
                "step() inside `with optimizer.skip_synchronize():`",
                tensor=slot.name,
            )

    def _abandon(self) -> None:
        """Waits for the operations in flight, so that the next step begins with none."""
        deadline = time.monotonic() + _PATIENCE_SECONDS
        for bucket in self.buckets:
            if bucket.handle is not None:
                # What called this raises; the buffers stay alive with the operation.
                with contextlib.suppress(Error):
                    bucket.handle.wait(max(0.0, deadline - time.monotonic()))
                bucket.handle = None
            bucket.missing = len(bucket.slots)
        self._begun = False
        for slot in self.slots:
            slot.start_over()

    def _finish(self) -> None:
        # All are waited for even if one fails: the next step must find none in flight.
        failure: Exception | None = None
        for bucket in self.buckets:
            try:
                bucket.wait()
            except Exception as error:
                failure = failure or error
        try:
            if failure is not None:
                raise failure
            found_sparse = self._take_out()
        finally:
            self._begun = False
            for slot in self.slots:
                slot.start_over()
        if found_sparse:
            self._rebuild()

    def _take_out(self) -> bool:
        """Results into p.grad; whether a parameter turned out to be sparse."""
        found: list[Slot] = []
        with torch.no_grad():
            for bucket in self.buckets:
                found += bucket.take_out()
            for slot in found:
                slot.sparse = True
                self._start_alone(slot, slot.parameter.grad)
            for slot in self.slots:
                if slot.pending is not None:
                    slot.parameter.grad = slot.pending().to(slot.parameter.device)
        return bool(found)


def _no_rows(parameter: torch.Tensor) -> torch.Tensor:
    indices = torch.empty((1, 0), dtype=torch.int64)
    values = torch.empty((0, *parameter.shape[1:]), dtype=parameter.dtype)
    return _tensors.sparse(indices, values, parameter.shape).to(parameter.device)


def _difference(lists: Sequence[Any], ranks: Sequence[int]) -> str:
    """Which parameter is the first that two ranks have differently."""
    remedy = "all ranks must give the same parameters to the optimizer, in the same order"
    first = lists[0]
    for rank, other in zip(ranks, lists):
        if other == first:
            continue
        for one, two in zip(first, other):
            if one != two:
                return (
                    f"ranks optimize different parameters: rank {ranks[0]} has {_shown(one)} where "
                    f"rank {rank} has {_shown(two)}; {remedy}"
                )
        return (
            f"ranks optimize different parameters: rank {ranks[0]} has {len(first)} of them, rank "
            f"{rank} has {len(other)}; {remedy}"
        )
    return f"ranks optimize different parameters; {remedy}"


def _shown(entry: Any) -> str:
    name, shape, dtype = entry
    return f"{name} {shape} {dtype}"
