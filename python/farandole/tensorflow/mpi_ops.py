"""Collective operations on tensors: eager, in tf.function, in graphs of tf.compat.v1.

All but join and barrier can be differentiated. As in Horovod, gradients of allgather and broadcast
come back averaged.
"""

from __future__ import annotations

from typing import Any, List, Optional, Sequence

import tensorflow as tf

from .. import basics as _basics
from .. import core
from ..basics import *  # noqa: F401,F403  (scripts look for init, rank, … here, too)
from ..core import ReduceOp
from ..errors import InvalidArgument
from ..process_sets import AnySet, ProcessSet, global_process_set, set_id
from ._backend import backend, names

Average = ReduceOp.AVERAGE
Sum = ReduceOp.SUM
Adasum = ReduceOp.ADASUM
Min = ReduceOp.MIN
Max = ReduceOp.MAX
Product = ReduceOp.PRODUCT


def handle_average_backwards_compatibility(op: Optional[int], average: Optional[bool]) -> ReduceOp:
    """The operator that `op` and the older `average` stand for."""
    if op is not None:
        if average is not None:
            raise ValueError("the op parameter supersedes average: give only one of them")
        return ReduceOp(op)
    return Average if average is None or average else Sum


_DTYPES = (
    tf.uint8,
    tf.int8,
    tf.uint16,
    tf.int16,
    tf.int32,
    tf.int64,
    tf.float16,
    tf.bfloat16,
    tf.float32,
    tf.float64,
    tf.bool,
    tf.complex64,
    tf.complex128,
)


def _tensor(value: Any, what: str, name: Optional[str]) -> Any:
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


def _same_reduction(grads: Sequence[Any], op: int, pre: float, post: float, set: int) -> List[Any]:
    if op not in (Sum, Average):
        raise NotImplementedError(
            f"allreduce with op={ReduceOp(op).name} has no gradient: only Sum and Average have"
        )
    if len(grads) == 1:
        return [_allreduce(grads[0], None, op, pre, post, process_set=set)]
    return _grouped_allreduce(grads, None, op, pre, post, process_set=set)


def _allreduce(
    tensor: Any,
    name: Optional[str] = None,
    op: int = Sum,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    ignore_name_scope: bool = False,
    process_set: AnySet = global_process_set,
) -> Any:
    """The reduction itself, of one dense tensor."""
    tensor = _tensor(tensor, "allreduce", name)
    node, match = names("FarandoleAllreduce", name, tensor, ignore_name_scope)
    rest = (int(op), prescale_factor, postscale_factor, set_id(process_set))
    if backend().compiled:
        return backend().allreduce(tensor, node, match, *rest)
    return _differentiable(
        lambda value: backend().allreduce(value, node, match, *rest),
        lambda _, grads: _same_reduction(grads, *rest)[0],
        tensor,
    )


def _grouped_allreduce(
    tensors: Sequence[Any],
    name: Optional[str] = None,
    op: int = Sum,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    ignore_name_scope: bool = False,
    process_set: AnySet = global_process_set,
) -> List[Any]:
    """Several dense tensors, reduced together or not at all."""
    core.require_initialised()
    tensors = [_tensor(each, "grouped_allreduce", name) for each in tensors]
    if not tensors:
        return []
    node, match = names("FarandoleGroupedAllreduce", name, None, ignore_name_scope)
    rest = (int(op), prescale_factor, postscale_factor, set_id(process_set))
    if backend().compiled:
        return backend().grouped_allreduce(tensors, node, match, *rest)
    return list(
        _differentiable(
            lambda *values: backend().grouped_allreduce(values, node, match, *rest),
            lambda _, grads: _same_reduction(grads, *rest),
            *tensors,
        )
    )


def _attributes(op: Any) -> Any:
    return (
        op.get_attr("reduce_op"),
        float(op.get_attr("prescale")),
        float(op.get_attr("postscale")),
        op.get_attr("process_set"),
    )


@tf.RegisterGradient("FarandoleAllreduce")
def _allreduce_gradient(op: Any, grad: Any) -> Any:
    return _same_reduction([grad], *_attributes(op))[0]


@tf.RegisterGradient("FarandoleGroupedAllreduce")
def _grouped_allreduce_gradient(op: Any, *grads: Any) -> List[Any]:
    whole = [
        tf.zeros_like(output) if grad is None else grad for grad, output in zip(grads, op.outputs)
    ]
    return _same_reduction(whole, *_attributes(op))


# ---- allgather


def _own_rows(rows: Any, grad: Any, scalar: bool, number: int) -> Any:
    """This rank's part of the average of all gradients."""
    grad = _allreduce(grad, None, Average, process_set=number)
    mine = _set_rank(number)
    start = tf.reduce_sum(rows[:mine])
    part = grad[start : start + rows[mine]]
    return tf.reshape(part, []) if scalar else part


def _gather(
    tensor: Any,
    name: Optional[str] = None,
    ignore_name_scope: bool = False,
    process_set: AnySet = global_process_set,
) -> Any:
    """(all rows, how many came from each member)"""
    tensor = _tensor(tensor, "allgather", name)
    node, match = names("FarandoleAllgather", name, tensor, ignore_name_scope)
    number = set_id(process_set)
    if backend().compiled:
        return backend().allgather(tensor, node, match, number)
    return _differentiable(
        lambda value: backend().allgather(value, node, match, number),
        lambda outputs, grads: _own_rows(
            outputs[1], grads[0], tensor.shape.rank == 0, number
        ),
        tensor,
    )


def allgather(
    tensor: Any,
    name: Optional[str] = None,
    ignore_name_scope: bool = False,
    process_set: ProcessSet = global_process_set,
) -> Any:
    """All ranks' tensors, one behind the other; first dimensions may differ."""
    dtype = getattr(tensor, "dtype", None)
    if dtype in _MOVED:
        moved = tf.bitcast(tensor, _MOVED[dtype])
        return tf.bitcast(_gather(moved, name, ignore_name_scope, process_set)[0], dtype)
    return _gather(tensor, name, ignore_name_scope, process_set)[0]


def grouped_allgather(
    tensors: Sequence[Any],
    name: Optional[str] = None,
    ignore_name_scope: bool = False,
    process_set: ProcessSet = global_process_set,
) -> List[Any]:
    return [
        allgather(each, None if name is None else f"{name}_{i}", ignore_name_scope, process_set)
        for i, each in enumerate(tensors)
    ]


@tf.RegisterGradient("FarandoleAllgather")
def _allgather_gradient(op: Any, grad: Any, _: Any) -> Any:
    scalar = op.inputs[0].shape.rank == 0
    return _own_rows(op.outputs[1], grad, scalar, op.get_attr("process_set"))


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
    name: Optional[str] = None,
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
    if backend().compiled:
        return backend().broadcast(tensor, root_rank, node, match, number)
    return _differentiable(
        lambda value: backend().broadcast(value, root_rank, node, match, number),
        lambda _, grads: _at_root(grads[0], root_rank, number),
        tensor,
    )


@tf.RegisterGradient("FarandoleBroadcast")
def _broadcast_gradient(op: Any, grad: Any) -> Any:
    return _at_root(grad, op.get_attr("root_rank"), op.get_attr("process_set"))


def broadcast_(
    variables: Sequence[Any],
    root_rank: int,
    name: Optional[str] = None,
    process_set: ProcessSet = global_process_set,
) -> List[Any]:
    """root_rank's values, assigned to the variables."""
    results = []
    for i, variable in enumerate(variables):
        value = broadcast(
            variable.read_value() if hasattr(variable, "read_value") else variable.value,
            root_rank,
            None if name is None else f"{name}_{i}",
            process_set=process_set,
        )
        variable.assign(value)
        results.append(variable)
    return results


# ---- alltoall


def _exchange(
    tensor: Any,
    splits: Any,
    name: Optional[str],
    ignore_name_scope: bool,
    process_set: AnySet,
) -> Any:
    tensor = _tensor(tensor, "alltoall", name)
    parts = tf.zeros([0], tf.int64) if splits is None else tf.cast(splits, tf.int64)
    node, match = names("FarandoleAlltoall", name, tensor, ignore_name_scope)
    number = set_id(process_set)
    if backend().compiled:
        return backend().alltoall(tensor, parts, node, match, number)
    return _differentiable(
        lambda value: backend().alltoall(value, parts, node, match, number),
        lambda outputs, grads: _exchange(grads[0], outputs[1], None, False, number)[0],
        tensor,
    )


def alltoall(
    tensor: Any,
    splits: Any = None,
    name: Optional[str] = None,
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


def _gathered(grad: Any, op: int, pre: float, post: float, number: int) -> Any:
    scale = pre * post * (_set_size(number) if op == Sum else 1)
    if scale != 1.0:
        grad = grad * tf.cast(scale, grad.dtype)
    return allgather(grad, process_set=number)  # type: ignore[arg-type]


def _reducescatter(
    tensor: Any,
    name: Optional[str] = None,
    op: int = Average,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    ignore_name_scope: bool = False,
    process_set: AnySet = global_process_set,
) -> Any:
    tensor = _tensor(tensor, "reducescatter", name)
    node, match = names("FarandoleReducescatter", name, tensor, ignore_name_scope)
    rest = (int(op), prescale_factor, postscale_factor, set_id(process_set))
    if backend().compiled:
        return backend().reducescatter(tensor, node, match, *rest)
    return _differentiable(
        lambda value: backend().reducescatter(value, node, match, *rest),
        lambda _, grads: _gathered(grads[0], *rest),
        tensor,
    )


@tf.RegisterGradient("FarandoleReducescatter")
def _reducescatter_gradient(op: Any, grad: Any) -> Any:
    return _gathered(grad, *_attributes(op))


# ---- Without data


def join() -> Any:
    """No more data here: others' reductions see neutral elements. Returns the last rank to join."""
    core.require_initialised()
    node, match = names("FarandoleJoin", None)
    return backend().join(node, match, 0)


def barrier(process_set: ProcessSet = global_process_set, name: Optional[str] = None) -> Any:
    """Done when all members have come to it."""
    core.require_initialised()
    node, match = names("FarandoleBarrier", name)
    return backend().barrier(node, match, set_id(process_set))


def _query(what: str, name: Optional[str], process_set_id: int = 0) -> Any:
    node, _ = names("FarandoleQuery", name or what)
    return backend().query(what, node, process_set_id)


def rank_op(name: Optional[str] = None) -> Any:
    """As a tensor, asked when the graph runs; so are the following."""
    return _query("rank", name)


def local_rank_op(name: Optional[str] = None) -> Any:
    return _query("local_rank", name)


def size_op(process_set_id: int = 0, name: Optional[str] = None) -> Any:
    return _query("size", name, process_set_id)


def local_size_op(name: Optional[str] = None) -> Any:
    return _query("local_size", name)


def process_set_included_op(process_set_id: int = 0, name: Optional[str] = None) -> Any:
    return _query("included", name, process_set_id)
