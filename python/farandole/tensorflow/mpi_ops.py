"""Collective operations on tensors: eager, in tf.function, in graphs of tf.compat.v1.

All but join and barrier can be differentiated. As in Horovod, gradients of allgather and broadcast
come back averaged.
"""

from __future__ import annotations

from typing import Any, Sequence

import tensorflow as tf

from .. import basics as _basics  # noqa: F401  (Horovod's name, which scripts use)
from .. import core
from ..basics import *  # noqa: F403  (scripts look for init, rank, … here, too)
from ..dtypes import (  # noqa: F401
    Adasum,
    Average,
    Max,
    Min,
    Product,
    ReduceOp,
    Sum,
    types_of,
)
from ..errors import InvalidArgument
from ..process_sets import AnySet, ProcessSet, global_process_set, set_id
from ._backend import backend, names, own
from ._reduction import Reduction


def handle_average_backwards_compatibility(op: int | None, average: bool | None) -> ReduceOp:
    """The operator that `op` and the older `average` stand for."""
    if op is not None:
        if average is not None:
            raise ValueError("the op parameter supersedes average: give only one of them")
        return ReduceOp(op)
    return Average if average is None or average else Sum


_DTYPES = tuple(types_of(tf))


def _tensor(value: Any, what: str, name: str | None) -> Any:
    """The value as a tensor that can travel."""
    core.require_initialised()
    tensor = tf.convert_to_tensor(value)
    if tensor.dtype not in _DTYPES:
        raise InvalidArgument(
            f"{what if name is None else f'{what} {name!r}'}: tensors of {tensor.dtype.name} are "
            f"not supported; possible are {', '.join(each.name for each in _DTYPES)}",
            tensor=name or "",
        )
    return tensor


# Nobody calculates with these here, but they can be moved.
_MOVED = {tf.uint32: tf.int32, tf.uint64: tf.int64}


def _executing_eagerly() -> bool:
    return tf.executing_eagerly()


def _differentiable(function: Any, gradient: Any, *tensors: Any) -> Any:
    """function(*tensors) with a gradient of its own, for operations that are not nodes."""

    @tf.custom_gradient
    def call(*values: Any) -> Any:
        outputs = function(*values)

        def backward(*grads: Any) -> Any:
            return gradient(outputs, grads)

        return outputs, backward

    return call(*tensors)


def _set_size(number: int) -> int:
    return len(core.members(number))


def _set_rank(number: int) -> int:
    members = core.members(number)
    return members.index(core.rank()) if core.rank() in members else -1


# ---- allreduce


def _same_reduction(grads: Sequence[Any], how: Reduction) -> list[Any]:
    if how.op not in (Sum, Average):
        raise NotImplementedError(
            f"allreduce with op={ReduceOp(how.op).name} has no gradient: only Sum and Average have"
        )
    if len(grads) == 1:
        return [_allreduce(grads[0], None, *how[:3], process_set=how.set)]
    return _grouped_allreduce(grads, None, *how[:3], process_set=how.set)


def _allreduce(
    tensor: Any,
    name: str | None = None,
    op: int = Sum,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    ignore_name_scope: bool = False,
    process_set: AnySet = global_process_set,
) -> Any:
    """The reduction itself, of one dense tensor."""
    tensor = _tensor(tensor, "allreduce", name)
    node, match = names("FarandoleAllreduce", name, tensor, ignore_name_scope)
    how = Reduction(int(op), prescale_factor, postscale_factor, set_id(process_set))
    ours = backend(how.set)
    if ours.compiled:
        return ours.allreduce(tensor, node, match, how)
    return _differentiable(
        lambda value: ours.allreduce(value, node, match, how),
        lambda _, grads: _same_reduction(grads, how)[0],
        tensor,
    )


def _grouped_allreduce(
    tensors: Sequence[Any],
    name: str | None = None,
    op: int = Sum,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    ignore_name_scope: bool = False,
    process_set: AnySet = global_process_set,
) -> list[Any]:
    """Several dense tensors, reduced together or not at all."""
    core.require_initialised()
    tensors = [_tensor(each, "grouped_allreduce", name) for each in tensors]
    if not tensors:
        return []
    node, match = names("FarandoleGroupedAllreduce", name, None, ignore_name_scope)
    how = Reduction(int(op), prescale_factor, postscale_factor, set_id(process_set))
    ours = backend(how.set)
    if ours.compiled:
        return ours.grouped_allreduce(tensors, node, match, how)
    return list(
        _differentiable(
            lambda *values: ours.grouped_allreduce(values, node, match, how),
            lambda _, grads: _same_reduction(grads, how),
            *tensors,
        )
    )


def _reduction_of(op: Any) -> Reduction:
    return Reduction(
        op.get_attr("reduce_op"),
        float(op.get_attr("prescale")),
        float(op.get_attr("postscale")),
        op.get_attr("process_set"),
    )


def _whole(grads: Sequence[Any], outputs: Sequence[Any]) -> list[Any]:
    """Zeros where an output of a group has no gradient."""
    return [tf.zeros_like(output) if grad is None else grad for grad, output in zip(grads, outputs)]


@tf.RegisterGradient("FarandoleAllreduce")
def _allreduce_gradient(op: Any, grad: Any) -> Any:
    return _same_reduction([grad], _reduction_of(op))[0]


@tf.RegisterGradient("FarandoleGroupedAllreduce")
def _grouped_allreduce_gradient(op: Any, *grads: Any) -> list[Any]:
    return _same_reduction(_whole(grads, op.outputs), _reduction_of(op))


# ---- allgather


def _own_part(rows: Any, grad: Any, scalar: bool, number: int) -> Any:
    mine = _set_rank(number)
    start = tf.reduce_sum(rows[:mine])
    part = grad[start : start + rows[mine]]
    return tf.reshape(part, []) if scalar else part


def _own_rows(
    rows: Sequence[Any], grads: Sequence[Any], inputs: Sequence[Any], number: int
) -> list[Any]:
    """This rank's parts of the averages of all gradients."""
    if len(grads) == 1:
        grads = [_allreduce(grads[0], None, Average, process_set=number)]
    else:
        grads = _grouped_allreduce(grads, None, Average, process_set=number)
    return [
        _own_part(each, grad, given.shape.rank == 0, number)
        for each, grad, given in zip(rows, grads, inputs)
    ]


def _gather(
    tensors: Sequence[Any],
    name: str | None = None,
    ignore_name_scope: bool = False,
    process_set: AnySet = global_process_set,
) -> list[Any]:
    """All rows of each tensor; several are gathered together or not at all."""
    tensors = [_tensor(each, "allgather", name) for each in tensors]
    number = set_id(process_set)
    single = len(tensors) == 1
    kind = "FarandoleAllgather" if single else "FarandoleGroupedAllgather"
    node, match = names(kind, name, tensors[0] if single else None, ignore_name_scope)

    ours = backend(number)

    def gather(*values: Any) -> list[Any]:
        if single:
            return list(ours.allgather(values[0], node, match, number))
        gathered, rows = ours.grouped_allgather(values, node, match, number)
        return gathered + rows

    if ours.compiled:
        return gather(*tensors)[: len(tensors)]

    def gradient(outputs: Any, grads: Any) -> Any:
        count = len(tensors)
        whole = _whole(grads[:count], outputs[:count])
        return _own_rows(outputs[count:], whole, tensors, number)

    return list(_differentiable(gather, gradient, *tensors))[: len(tensors)]


def allgather(
    tensor: Any,
    name: str | None = None,
    ignore_name_scope: bool = False,
    process_set: ProcessSet = global_process_set,
) -> Any:
    """All ranks' tensors, one behind the other; first dimensions may differ."""
    dtype = getattr(tensor, "dtype", None)
    if dtype in _MOVED:
        moved = tf.bitcast(tensor, _MOVED[dtype])
        return tf.bitcast(allgather(moved, name, ignore_name_scope, process_set), dtype)
    return _gather([tensor], name, ignore_name_scope, process_set)[0]


def grouped_allgather(
    tensors: Sequence[Any],
    name: str | None = None,
    ignore_name_scope: bool = False,
    process_set: ProcessSet = global_process_set,
) -> list[Any]:
    """Several tensors, gathered together or not at all."""
    core.require_initialised()
    if not tensors:
        return []
    return _gather(tensors, name, ignore_name_scope, process_set)


@tf.RegisterGradient("FarandoleAllgather")
def _allgather_gradient(op: Any, grad: Any, _: Any) -> Any:
    return _own_rows([op.outputs[1]], [grad], op.inputs, op.get_attr("process_set"))[0]


@tf.RegisterGradient("FarandoleGroupedAllgather")
def _grouped_allgather_gradient(op: Any, *grads: Any) -> Any:
    count = len(op.inputs)
    whole = _whole(grads[:count], op.outputs[:count])
    return _own_rows(op.outputs[count:], whole, op.inputs, op.get_attr("process_set"))


# ---- broadcast


def _at_root(grad: Any, root: int, number: int) -> Any:
    grad = _allreduce(grad, None, Average, process_set=number)
    if core.rank() == root:
        return grad
    # A session runs only what is needed: the others wait for this rank, too.
    with tf.control_dependencies([grad]):
        return tf.identity(tf.zeros_like(grad))


def broadcast(
    tensor: Any,
    root_rank: int,
    name: str | None = None,
    ignore_name_scope: bool = False,
    process_set: ProcessSet = global_process_set,
) -> Any:
    """root_rank's tensor; root_rank is a rank of the world."""
    dtype = getattr(tensor, "dtype", None)
    if dtype in _MOVED:
        moved = tf.bitcast(tensor, _MOVED[dtype])
        return tf.bitcast(broadcast(moved, root_rank, name, ignore_name_scope, process_set), dtype)
    tensor = _tensor(tensor, "broadcast", name)
    node, match = names("FarandoleBroadcast", name, tensor, ignore_name_scope)
    number = set_id(process_set)
    ours = backend(number)
    if ours.compiled:
        return ours.broadcast(tensor, root_rank, node, match, number)
    return _differentiable(
        lambda value: ours.broadcast(value, root_rank, node, match, number),
        lambda _, grads: _at_root(grads[0], root_rank, number),
        tensor,
    )


@tf.RegisterGradient("FarandoleBroadcast")
def _broadcast_gradient(op: Any, grad: Any) -> Any:
    return _at_root(grad, op.get_attr("root_rank"), op.get_attr("process_set"))


def value_of(variable: Any) -> Any:
    """The tensor in a variable of TensorFlow or Keras."""
    if hasattr(variable, "read_value"):
        return variable.read_value()
    return tf.convert_to_tensor(variable.value if not callable(variable.value) else variable)


def broadcast_(
    variables: Sequence[Any],
    root_rank: int,
    name: str | None = None,
    process_set: ProcessSet = global_process_set,
) -> list[Any]:
    """root_rank's values, assigned to the variables. In a graph: what is to be run."""
    return [
        variable.assign(
            broadcast(
                value_of(variable),
                root_rank,
                None if name is None else f"{name}_{i}",
                process_set=process_set,
            )
        )
        for i, variable in enumerate(variables)
    ]


# ---- alltoall


def _exchange(
    tensor: Any,
    splits: Any,
    name: str | None,
    ignore_name_scope: bool,
    process_set: AnySet,
) -> Any:
    tensor = _tensor(tensor, "alltoall", name)
    parts = tf.zeros([0], tf.int64) if splits is None else tf.cast(splits, tf.int64)
    node, match = names("FarandoleAlltoall", name, tensor, ignore_name_scope)
    number = set_id(process_set)
    ours = backend(number)
    if ours.compiled:
        return ours.alltoall(tensor, parts, node, match, number)
    return _differentiable(
        lambda value: ours.alltoall(value, parts, node, match, number),
        lambda outputs, grads: _exchange(grads[0], outputs[1], None, False, number)[0],
        tensor,
    )


def alltoall(
    tensor: Any,
    splits: Any = None,
    name: str | None = None,
    ignore_name_scope: bool = False,
    process_set: ProcessSet = global_process_set,
) -> Any:
    """splits[i] rows go to member i. With splits: (rows received, how many from each)."""
    received, rows = _exchange(tensor, splits, name, ignore_name_scope, process_set)
    return received if splits is None else (received, rows)


@tf.RegisterGradient("FarandoleAlltoall")
def _alltoall_gradient(op: Any, grad: Any, _: Any) -> Any:
    back = _exchange(grad, op.outputs[1], None, False, op.get_attr("process_set"))[0]
    return back, None


# ---- reducescatter


def _gathered(grads: Sequence[Any], how: Reduction) -> list[Any]:
    scale = how.prescale * how.postscale * (_set_size(how.set) if how.op == Sum else 1)
    if scale != 1.0:
        grads = [grad * tf.cast(scale, grad.dtype) for grad in grads]
    return _gather(grads, process_set=how.set)


def _reducescatter(
    tensors: Sequence[Any],
    name: str | None = None,
    op: int = Average,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    ignore_name_scope: bool = False,
    process_set: AnySet = global_process_set,
) -> list[Any]:
    """This rank's rows of each; several tensors are reduced together or not at all."""
    core.require_initialised()
    tensors = [_tensor(each, "reducescatter", name) for each in tensors]
    if not tensors:
        return []
    how = Reduction(int(op), prescale_factor, postscale_factor, set_id(process_set))
    single = len(tensors) == 1
    kind = "FarandoleReducescatter" if single else "FarandoleGroupedReducescatter"
    node, match = names(kind, name, tensors[0] if single else None, ignore_name_scope)

    ours = backend(how.set)

    def scatter(*values: Any) -> list[Any]:
        if single:
            return [ours.reducescatter(values[0], node, match, how)]
        return ours.grouped_reducescatter(values, node, match, how)

    if ours.compiled:
        return scatter(*tensors)
    gradient = lambda outputs, grads: _gathered(_whole(grads, outputs), how)  # noqa: E731
    return list(_differentiable(scatter, gradient, *tensors))


@tf.RegisterGradient("FarandoleReducescatter")
def _reducescatter_gradient(op: Any, grad: Any) -> Any:
    return _gathered([grad], _reduction_of(op))[0]


@tf.RegisterGradient("FarandoleGroupedReducescatter")
def _grouped_reducescatter_gradient(op: Any, *grads: Any) -> list[Any]:
    return _gathered(_whole(grads, op.outputs), _reduction_of(op))


# ---- Without data


def join() -> Any:
    """No more data here: others' reductions see neutral elements. Returns the last rank to join."""
    core.require_initialised()
    node, match = names("FarandoleJoin", None)
    return backend().join(node, match, 0)


def barrier(process_set: ProcessSet = global_process_set, name: str | None = None) -> Any:
    """Done when all members have come to it."""
    core.require_initialised()
    node, match = names("FarandoleBarrier", name)
    number = set_id(process_set)
    return backend(number).barrier(node, match, number)


def _query(what: str, name: str | None, process_set_id: int = 0) -> Any:
    node, _ = names("FarandoleQuery", name or what)
    return own().query(what, node, process_set_id)


def rank_op(name: str | None = None) -> Any:
    """As a tensor, asked when the graph runs; so are the following."""
    return _query("rank", name)


def local_rank_op(name: str | None = None) -> Any:
    return _query("local_rank", name)


def size_op(process_set_id: int = 0, name: str | None = None) -> Any:
    return _query("size", name, process_set_id)


def local_size_op(name: str | None = None) -> Any:
    return _query("local_size", name)


def process_set_included_op(process_set_id: int = 0, name: str | None = None) -> Any:
    return _query("included", name, process_set_id)
