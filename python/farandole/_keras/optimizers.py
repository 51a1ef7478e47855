"""Optimizers of Keras whose gradients are those of all ranks.

The object is of a subclass of the optimizer's own class, with its name, and shares all state with
the optimizer it is made from: what is saved from it can be loaded where Farandole is not installed.
"""

from __future__ import annotations

import functools
from typing import Any, Sequence

import tensorflow as tf

from ..errors import InvalidArgument
from ..process_sets import ProcessSet, global_process_set
from ..tensorflow.adasum import combine_steps
from ..tensorflow.aggregation import LocalAggregation
from ..tensorflow.compression import Compression
from ..tensorflow.gradients import GradientReducer
from ..tensorflow.mpi_ops import Adasum, Average
from .loss_scale import reduce_before_loss_scaling
from .xla import without_xla


class Distributed:
    """Marks the classes made here."""

    _farandole_reducer: GradientReducer

    def _farandole_combines_steps(self) -> bool:
        return self._farandole_reducer.op == Adasum

    def register_local_var(self, variable: Any) -> None:
        """The gradient of this variable stays on its rank."""
        self._farandole_reducer.register_local(variable)


class _Keras3(Distributed):
    """apply() is where every way to update ends; apply_gradients() calls it."""

    # Of the optimizer's own class, the other base.
    gradient_accumulation_steps: Any
    _iterations: Any
    _trainable_variables: Any

    _farandole_sum_of_passes = False
    _farandole_reduced = False  # while loss scaling, which has reduced already, calls this one
    _farandole_variables: Sequence[Any] = ()

    def _farandole_accumulates(self) -> bool:
        # Loss scaling decides in its own apply() whether there is an update: reduced before.
        return bool(self.gradient_accumulation_steps) and not hasattr(self, "inner_optimizer")

    def _farandole_apply(self, grads: Sequence[Any], variables: Sequence[Any], given: bool) -> Any:
        # A built optimizer is called without variables.
        apply = super().apply  # type: ignore[misc]
        return apply(grads, variables) if given else apply(grads)

    def apply(self, grads: Sequence[Any], trainable_variables: Any = None) -> Any:
        grads = list(grads)
        variables = (
            self._trainable_variables if trainable_variables is None else list(trainable_variables)
        )
        given = trainable_variables is not None
        if self._farandole_combines_steps():
            apply = functools.partial(self._farandole_apply, grads, variables, given)
            combine_steps(self._farandole_reducer, variables, apply)
            return self._iterations
        if self._farandole_accumulates():
            kept = [each for grad, each in zip(grads, variables) if grad is not None]
            object.__setattr__(self, "_farandole_variables", kept)
        elif not self._farandole_reduced:
            grads = self._farandole_reducer.reduce(grads, variables)
        return self._farandole_apply(grads, variables, given)

    def _clip_gradients(self, grads: Sequence[Any]) -> Any:
        """Called once per update with what was accumulated: reduced before it is clipped."""
        if self._farandole_accumulates():
            if not self._farandole_reduced and not self._farandole_combines_steps():
                grads = self._farandole_reducer.reduce(list(grads), self._farandole_variables)
            if self._farandole_sum_of_passes:
                passes = self.gradient_accumulation_steps
                grads = [None if grad is None else grad * passes for grad in grads]
        return super()._clip_gradients(grads)  # type: ignore[misc]


class _Keras2(Distributed):
    """Both generations of Keras 2: minimize() calls apply_gradients()."""

    # Of the optimizer's own class, the other base.
    iterations: Any
    build: Any

    _farandole_aggregation: LocalAggregation | None = None

    def apply_gradients(self, grads_and_vars: Any, *args: Any, **kwargs: Any) -> Any:
        grads, variables = zip(*grads_and_vars)
        apply = super().apply_gradients  # type: ignore[misc]
        aggregation = self._farandole_aggregation

        def update(values: Sequence[Any]) -> Any:
            reducer = self._farandole_reducer
            if self._farandole_combines_steps():
                step = lambda: apply(zip(values, variables), *args, **kwargs)  # noqa: E731
                done = combine_steps(reducer, variables, step)
                in_function = tf.compat.v1.executing_eagerly_outside_functions()
                return self.iterations if in_function else done
            return apply(zip(reducer.reduce(values, variables), variables), *args, **kwargs)

        if aggregation is None:
            return update(grads)

        def flush(sums: Sequence[Any]) -> None:
            update(sums)

        before = self.iterations.read_value()
        with tf.init_scope():  # its variables cannot be made inside a condition
            if hasattr(self, "_create_all_weights"):  # the older generation
                self._create_all_weights(variables)
            elif not hasattr(self, "_index_dict"):
                self.build(variables)
        aggregation.step(grads, flush)
        # Every pass counts, as for schedules of learning rates.
        return self.iterations.assign(before + 1)


def is_keras_3(optimizer: Any) -> bool:
    return hasattr(optimizer, "_backend_apply_gradients")


def _check(optimizer: Any) -> None:
    if isinstance(optimizer, Distributed):
        raise ValueError("this optimizer is distributed already")
    if not hasattr(optimizer, "apply_gradients") or not hasattr(optimizer, "get_config"):
        raise ValueError(
            f"an optimizer of Keras or tf.compat.v1.train is needed, not {type(optimizer).__name__}"
        )
    if is_keras_3(optimizer):
        import keras

        if keras.backend.backend() != "tensorflow":
            raise InvalidArgument(
                f"Keras runs on {keras.backend.backend()}: farandole needs KERAS_BACKEND=tensorflow"
            )


def distribute(
    optimizer: Any,
    name: str | None = None,
    device_dense: str = "",
    device_sparse: str = "",
    compression: Any = Compression.none,
    sparse_as_dense: bool = False,
    gradient_predivide_factor: float = 1.0,
    op: int = Average,
    backward_passes_per_step: int = 1,
    average_aggregated_gradients: bool = False,
    num_groups: int = 0,
    groups: Any = None,
    process_set: ProcessSet = global_process_set,
    scale_local_gradients: bool = True,
) -> Any:
    """The optimizer, with gradients of all ranks."""
    _check(optimizer)
    kind = type(optimizer)
    name = name or f"Distributed{kind.__name__}"
    reducer = GradientReducer(
        f"{name}_Allreduce",
        device_dense,
        device_sparse,
        compression,
        sparse_as_dense,
        op,
        gradient_predivide_factor,
        num_groups,
        groups,
        process_set,
        scale_local_gradients,
    )
    if backward_passes_per_step < 1:
        raise ValueError("backward_passes_per_step must be at least 1")
    third = is_keras_3(optimizer)
    made: Any = type(
        kind.__name__,
        (_Keras3 if third else _Keras2, kind),
        {"__module__": kind.__module__, "__doc__": kind.__doc__},
    )
    wrapped = made.__new__(made)
    wrapped.__dict__.update(optimizer.__dict__)
    object.__setattr__(wrapped, "_farandole_reducer", reducer)
    if third:
        without_xla()
        reduce_before_loss_scaling()
    if backward_passes_per_step > 1:
        _aggregate(wrapped, third, backward_passes_per_step, average_aggregated_gradients)
    return wrapped


def _aggregate(wrapped: Any, third: bool, passes: int, average: bool) -> None:
    if not third:
        aggregation = LocalAggregation(passes, average)
        object.__setattr__(wrapped, "_farandole_aggregation", aggregation)
        object.__setattr__(wrapped, "_agg_helper", aggregation)
        return
    # Keras 3 accumulates by itself, and takes the mean of the passes.
    if hasattr(wrapped, "inner_optimizer"):
        raise ValueError(
            "backward_passes_per_step and loss scaling do not go together: give "
            "gradient_accumulation_steps to the inner optimizer"
        )
    if wrapped.built or wrapped.gradient_accumulation_steps:
        raise ValueError(
            "backward_passes_per_step needs an optimizer that has not been used, without "
            "gradient_accumulation_steps"
        )
    wrapped.gradient_accumulation_steps = passes
    object.__setattr__(wrapped, "_farandole_sum_of_passes", not average)
