"""The same start everywhere: variables, objects, hooks for sessions."""

from __future__ import annotations

from typing import Any, Callable, Sequence

import tensorflow as tf

from .. import core, objects
from ..errors import InvalidArgument
from ..process_sets import ProcessSet, global_process_set
from . import mpi_ops
from .mpi_ops import value_of


def broadcast_variables(
    variables: Sequence[Any],
    root_rank: int,
    process_set: ProcessSet = global_process_set,
    inplace: bool = False,
) -> Any:
    """root_rank's values for all variables. In a graph of tf.compat.v1: the operation to run.

    `inplace` is accepted; memory is the same either way.
    """
    core.require_initialised()
    updates: list[Any] = []
    for i, variable in enumerate(variables):
        value = mpi_ops.broadcast(
            value_of(variable), root_rank, f"broadcast_variable_{i}", process_set=process_set
        )
        updates.append(variable.assign(value))
    if tf.executing_eagerly() or tf.inside_function():
        return None
    return tf.group(*updates)


def _sessions_only(what: str) -> None:
    if tf.executing_eagerly():
        raise RuntimeError(
            f"{what} needs a graph of tf.compat.v1: with eager execution use "
            "broadcast_variables(model.variables, root_rank=0) instead"
        )


def broadcast_global_variables(root_rank: int) -> Any:
    """An operation that gives all global variables root_rank's values."""
    _sessions_only("broadcast_global_variables()")
    return broadcast_variables(tf.compat.v1.global_variables(), root_rank)


class BroadcastGlobalVariablesHook(tf.compat.v1.train.SessionRunHook):
    """Gives all global variables root_rank's values once the session is made."""

    def __init__(self, root_rank: int, device: str = "") -> None:
        super().__init__()
        self.root_rank = root_rank
        self.device = device
        self.bcast_op: Any = None

    def begin(self) -> None:
        if self.bcast_op is None or self.bcast_op.graph is not tf.compat.v1.get_default_graph():
            with tf.device(self.device or None):
                self.bcast_op = broadcast_global_variables(self.root_rank)

    def after_create_session(self, session: Any, coord: Any) -> None:
        session.run(self.bcast_op)


def broadcast_object(
    obj: Any,
    root_rank: int = 0,
    session: Any = None,
    name: str | None = None,
    process_set: ProcessSet = global_process_set,
) -> Any:
    """root_rank's object on all ranks; it must be picklable. No session is needed."""
    return objects.broadcast_object(obj, root_rank, name, process_set)


def broadcast_object_fn(
    root_rank: int = 0,
    session: Any = None,
    name: str | None = None,
    process_set: ProcessSet = global_process_set,
) -> Callable[[Any], Any]:
    return lambda obj: broadcast_object(obj, root_rank, session, name, process_set)


def allgather_object(
    obj: Any,
    session: Any = None,
    name: str | None = None,
    process_set: ProcessSet = global_process_set,
) -> list[Any]:
    """Every rank's object, in the order of ranks."""
    return objects.allgather_object(obj, name, process_set)


def check_num_rank_power_of_2(num_rank: int) -> bool:
    """Kept for scripts that ask before they use Adasum; any number of ranks works here."""
    if num_rank < 1:
        raise InvalidArgument(f"there cannot be {num_rank} ranks")
    return num_rank & (num_rank - 1) == 0
