"""DistributedOptimizer: of tf.compat.v1, or of Keras, by what it is given."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from ..process_sets import ProcessSet, global_process_set
from .adasum import combine_steps
from .aggregation import LocalAggregation
from .compression import Compression
from .gradients import GradientReducer
from .mpi_ops import Adasum, Average

_Optimizer: Any = tf.compat.v1.train.Optimizer


class _DistributedOptimizer(_Optimizer):
    """An optimizer of tf.compat.v1 whose compute_gradients() reduces over all ranks.

    With Adasum apply_gradients() does, and combines what the optimizer made of the gradients.
    """

    def __init__(
        self,
        optimizer: Any,
        name: str,
        use_locking: bool,
        reducer: GradientReducer,
        aggregation: LocalAggregation | None,
    ) -> None:
        super().__init__(name=name, use_locking=use_locking)
        self._optimizer = optimizer
        self._reducer = reducer
        self._agg_helper = aggregation

    def compute_gradients(self, *args: Any, **kwargs: Any) -> list[tuple[Any, Any]]:
        """With several passes per step the sum is reduced later, in apply_gradients()."""
        pairs = self._optimizer.compute_gradients(*args, **kwargs)
        if self._agg_helper is not None or self._reducer.op == Adasum or not pairs:
            return pairs
        grads, variables = zip(*pairs)
        return list(zip(self._reducer.reduce(grads, variables), variables))

    def apply_gradients(self, grads_and_vars: Any, *args: Any, **kwargs: Any) -> Any:
        grads, variables = zip(*grads_and_vars)

        def apply(values: Any) -> Any:
            return self._optimizer.apply_gradients(zip(values, variables), *args, **kwargs)

        def update(values: Any) -> Any:
            if self._reducer.op == Adasum:
                return combine_steps(self._reducer, variables, lambda: apply(values))
            return apply(self._reducer.reduce(values, variables))

        if self._agg_helper is None:
            return update(grads) if self._reducer.op == Adasum else apply(grads)
        done = self._agg_helper.step(grads, update)
        return done if tf.executing_eagerly() else done.op

    def register_local_var(self, variable: Any) -> None:
        self._reducer.register_local(variable)

    def get_slot(self, *args: Any, **kwargs: Any) -> Any:
        return self._optimizer.get_slot(*args, **kwargs)

    def get_slot_names(self, *args: Any, **kwargs: Any) -> Any:
        return self._optimizer.get_slot_names(*args, **kwargs)

    def variables(self, *args: Any, **kwargs: Any) -> Any:
        return self._optimizer.variables(*args, **kwargs)


def DistributedOptimizer(
    optimizer: Any,
    name: str | None = None,
    use_locking: bool = False,
    device_dense: str = "",
    device_sparse: str = "",
    compression: Any = Compression.none,
    sparse_as_dense: bool = False,
    backward_passes_per_step: int = 1,
    op: int = Average,
    gradient_predivide_factor: float = 1.0,
    average_aggregated_gradients: bool = False,
    num_groups: int = 0,
    groups: Any = None,
    process_set: ProcessSet = global_process_set,
    scale_local_gradients: bool = True,
) -> Any:
    """The optimizer, with gradients of all ranks. op=Adasum combines the ranks' own steps."""
    if not isinstance(optimizer, _Optimizer):
        from .._keras.optimizers import distribute

        return distribute(
            optimizer,
            name=name,
            device_dense=device_dense,
            device_sparse=device_sparse,
            compression=compression,
            sparse_as_dense=sparse_as_dense,
            gradient_predivide_factor=gradient_predivide_factor,
            op=op,
            backward_passes_per_step=backward_passes_per_step,
            average_aggregated_gradients=average_aggregated_gradients,
            num_groups=num_groups,
            groups=groups,
            process_set=process_set,
            scale_local_gradients=scale_local_gradients,
        )
    if isinstance(optimizer, _DistributedOptimizer):
        raise ValueError("this optimizer is distributed already")
    name = name or f"Distributed{type(optimizer).__name__}"
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
    aggregation = None
    if backward_passes_per_step != 1:
        aggregation = LocalAggregation(backward_passes_per_step, average_aggregated_gradients)
    return _DistributedOptimizer(optimizer, name, use_locking, reducer, aggregation)
