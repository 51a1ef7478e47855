"""Gradients of one step, reduced: what tapes and optimizers have in common."""

from __future__ import annotations

import contextlib
from typing import Any, Sequence

import tensorflow as tf

from ..errors import InvalidArgument
from ..process_sets import ProcessSet, global_process_set, set_id
from ._backend import backend, refuse_xla
from ._reduction import LAST, NOBODY, awaited_by
from .collectives import allreduce, grouped_allreduce
from .compression import Compression
from .mpi_ops import Adasum, Average, Sum

_BUCKET = 4 << 20  # bytes


def key(variable: Any) -> Any:
    """What tells variables apart: Keras 3 wraps those of TensorFlow."""
    inner = getattr(variable, "_value", variable)
    return inner.ref() if hasattr(inner, "ref") else id(inner)


class GradientReducer:
    """Reduces lists of gradients. `prefix` begins the names of the operations."""

    def __init__(
        self,
        prefix: str,
        device_dense: str = "",
        device_sparse: str = "",
        compression: Any = Compression.none,
        sparse_as_dense: bool = False,
        op: int = Average,
        gradient_predivide_factor: float = 1.0,
        num_groups: int = 0,
        groups: Any = None,
        process_set: ProcessSet = global_process_set,
        scale_local_gradients: bool = True,
    ) -> None:
        if op not in (Average, Sum, Adasum):
            raise InvalidArgument("gradients are reduced with op=Average, Sum or Adasum")
        if gradient_predivide_factor != 1.0 and op != Average:
            raise ValueError("gradient_predivide_factor is possible with op=Average only")
        if num_groups and groups is None:
            groups = num_groups
        lists = groups is None or isinstance(groups, (list, tuple))
        if not lists and (not isinstance(groups, int) or groups < 0):
            raise ValueError("groups is a number, or a list of lists of variables")
        self.prefix = prefix
        self.device_dense = device_dense
        self.device_sparse = device_sparse
        self.compression = compression
        self.sparse_as_dense = sparse_as_dense
        self.op = op
        self.predivide = float(gradient_predivide_factor)
        self.groups = groups
        self.process_set = process_set
        self.scale_local_gradients = scale_local_gradients
        self._local: dict[Any, Any] = {}

    def register_local(self, variable: Any) -> None:
        """The gradient of this variable stays on its rank."""
        self._local[key(variable)] = variable

    def is_local(self, variable: Any) -> bool:
        return variable is not None and key(variable) in self._local

    def _how(self) -> dict[str, Any]:
        how: dict[str, Any] = {
            "device_dense": self.device_dense,
            "device_sparse": self.device_sparse,
            "compression": self.compression,
            "op": self.op,
            "process_set": self.process_set,
        }
        if self.predivide != 1.0:
            how["op"] = Sum
            how["prescale_factor"] = 1.0 / self.predivide
            how["postscale_factor"] = self.predivide / self.process_set.size()
        return how

    def _grouped(
        self, dense: list[int], grads: Sequence[Any], variables: Sequence[Any]
    ) -> list[list[int]]:
        """The dense gradients by what is reduced together."""
        if tf.executing_eagerly() or not backend(set_id(self.process_set)).compiled:
            return [dense]  # one call that waits, instead of many
        if not self.groups:
            return [[i] for i in dense] if self.op == Adasum else _buckets(dense, grads, variables)
        if isinstance(self.groups, int):
            count = min(self.groups, len(dense))
            return [
                dense[len(dense) * n // count : len(dense) * (n + 1) // count] for n in range(count)
            ]
        place = {key(variable): n for n, group in enumerate(self.groups) for variable in group}
        together: dict[Any, list[int]] = {}
        for i in dense:
            group = place.get(key(variables[i])) if variables[i] is not None else None
            together.setdefault(("alone", i) if group is None else group, []).append(i)
        return list(together.values())

    def reduce(self, grads: Sequence[Any], variables: Sequence[Any] | None = None) -> list[Any]:
        """The gradients of all ranks, in the same order; None stays None."""
        refuse_xla(self.prefix)
        if tf.executing_eagerly():
            return self._reduce(grads, variables)
        with awaited_by(NOBODY):
            return self._reduce(grads, variables)

    def _reduce(self, grads: Sequence[Any], variables: Sequence[Any] | None) -> list[Any]:
        size = self.process_set.size()
        variables = [None] * len(grads) if variables is None else list(variables)
        results: list[Any] = list(grads)
        dense: list[int] = []
        how = self._how()
        for i, grad in enumerate(grads):
            if grad is None:
                continue
            if self.is_local(variables[i]):
                if self.scale_local_gradients and size > 1:
                    results[i] = _scaled(grad, 1.0 / size)
                continue
            if isinstance(grad, tf.IndexedSlices):
                if not self.sparse_as_dense and self.op != Adasum:
                    results[i] = allreduce(grad, name=f"{self.prefix}_{i}", **how)
                    continue
                grad = tf.convert_to_tensor(grad)
            results[i] = grad
            dense.append(i)
        for group in self._grouped(dense, results, variables) if dense else []:
            # Backward goes from the last variable to the first one.
            with awaited_by(LAST) if dense[0] in group else contextlib.nullcontext():
                reduced = self._reduce_group([results[i] for i in group], group[0], how)
            for i, value in zip(group, reduced):
                results[i] = value
        return results

    def _reduce_group(self, grads: list[Any], number: int, how: dict[str, Any]) -> list[Any]:
        name = f"{self.prefix}_{number}"
        if len(grads) == 1:
            return [allreduce(grads[0], name=name, **how)]
        return grouped_allreduce(grads, name=name, **how)


def _buckets(dense: list[int], grads: Sequence[Any], variables: Sequence[Any]) -> list[list[int]]:
    """Neighbours together, from the last one on, as backward makes them: every call costs wake-ups,
    and a bucket starts while the rest of backward runs. By the variables' shapes, which all ranks
    agree about, whatever each knows of its gradients' shapes.
    """
    buckets: list[list[int]] = []
    room = 0
    for i in reversed(dense):
        shape = grads[i].shape if variables[i] is None else variables[i].shape
        elements = tf.TensorShape(shape).num_elements()
        size = None if elements is None else elements * grads[i].dtype.size
        if size is None or size > room or not buckets:
            buckets.append([])
            room = _BUCKET
        buckets[-1].insert(0, i)
        room = 0 if size is None else room - size
    return buckets


def _scaled(grad: Any, factor: float) -> Any:
    if isinstance(grad, tf.IndexedSlices):
        values = grad.values * tf.cast(factor, grad.values.dtype)
        return tf.IndexedSlices(values, grad.indices, grad.dense_shape)
    return grad * tf.cast(factor, grad.dtype)
