"""Adasum in optimizers: every rank takes its own step, and the steps are combined.

As in Horovod, what is combined is what the optimizer made of the gradients (with momentum,
clipping, its own learning rate), not the gradients.
"""

from __future__ import annotations

from typing import Any, Callable, Sequence

import tensorflow as tf

from .gradients import GradientReducer
from .mpi_ops import value_of


def combine_steps(
    reducer: GradientReducer, variables: Sequence[Any], apply: Callable[[], Any]
) -> Any:
    """apply() on this rank, then the combined step for all variables that are not local."""
    shared = [each for each in variables if not reducer.is_local(each)]
    in_graph = not tf.executing_eagerly()
    # Copies: in graphs of tf.compat.v1 a value read may be the variable's own memory.
    starts = [tf.raw_ops.Snapshot(input=value_of(each)) for each in shared]
    with tf.control_dependencies(starts if in_graph else []):
        done = apply()
    with tf.control_dependencies([done] if in_graph and done is not None else []):
        steps = [value_of(each) - start for each, start in zip(shared, starts)]
    combined = reducer.reduce(steps, shared)
    updates = [each.assign(start + step) for each, start, step in zip(shared, starts, combined)]
    return tf.group(*updates) if in_graph else done
