"""The operations without compiled code: Python functions that TensorFlow calls and that wait.

Each blocks a thread of TensorFlow, so they run strictly one after the other: tf.function orders
them by itself, in graphs of tf.compat.v1 each depends on the one before.
"""

from __future__ import annotations

import threading
from typing import Any, Callable, List, Optional, Sequence, Set, Tuple

import numpy
import tensorflow as tf

from .. import _abi, core
from .. import numpy as arrays
from ..handles import Handle, Request, submit, submit_group
from ._reduction import Reduction
from .interrupts import withdraw_on_ctrl_c

_waiting: Set[Handle] = set()
_lock = threading.Lock()


def _withdraw_all() -> None:
    with _lock:
        handles = list(_waiting)
    for handle in handles:
        handle.cancel()


def _finish(parts: Sequence[Handle]) -> None:
    """All are waited for even if one fails: none may write into memory later."""
    failure: Optional[BaseException] = None
    with _lock:
        _waiting.update(parts)
    try:
        for part in parts:
            try:
                part.wait()
            except Exception as error:
                failure = failure or error
    finally:
        with _lock:
            _waiting.difference_update(parts)
    if failure is not None:
        raise failure


def _do(
    operation: int, what: str, values: Sequence[Any], name: Optional[str], set: int, **fields: Any
) -> Tuple[List[numpy.ndarray], List[Any]]:
    """(results, rows from each member). Several values are one group."""
    same_shape = operation in (_abi.ALLREDUCE, _abi.BROADCAST)
    requests: List[Request] = []
    outputs: List[Any] = []
    sources: List[Any] = []
    for i, value in enumerate(values):
        own = name if len(values) == 1 or name is None else f"{name}_{i}"
        source, dtype = arrays._array(value, what, own)
        output = numpy.empty_like(source) if same_shape else None
        shape = source.shape
        if operation == _abi.ALLGATHER:
            shape = shape or (1,)  # a scalar is a row of one
        requests.append(
            Request(
                operation,
                input=source.ctypes.data,
                output=0 if output is None else output.ctypes.data,
                output_bytes=_abi.BYTES_UNKNOWN if output is None else output.nbytes,
                shape=shape,
                dtype=dtype,
                name=own,
                set=set,
                keep=(source, output),
                **fields,
            )
        )
        outputs.append(output)
        sources.append(source)
    parts = [submit(requests[0])] if len(requests) == 1 else submit_group(requests)
    _finish(parts)
    if same_shape:
        return outputs, []
    owned = [arrays._owned(part, source.dtype) for part, source in zip(parts, sources)]
    return [result for result, _ in owned], [rows for _, rows in owned]


def _reduce(
    operation: int, what: str, values: Sequence[Any], name: Optional[str], how: Reduction
) -> List[numpy.ndarray]:
    return _do(
        operation,
        what,
        values,
        name,
        how.set,
        op=int(how.op),
        prescale=how.prescale,
        postscale=how.postscale,
    )[0]


def _gather(values: Sequence[Any], name: Optional[str], set: int) -> List[numpy.ndarray]:
    """The gathered arrays, then the rows of each."""
    gathered, rows = _do(_abi.ALLGATHER, "allgather", values, name, set)
    return gathered + [numpy.asarray(each, numpy.int64) for each in rows]


def _exchange(value: Any, splits: Any, name: Optional[str], set: int) -> List[numpy.ndarray]:
    given = [int(each) for each in splits]
    received, rows = _do(_abi.ALLTOALL, "alltoall", [value], name, set, splits=given or None)
    return received + [numpy.asarray(rows[0], numpy.int32)]


def _meet(operation: int, name: Optional[str], set: int) -> List[numpy.ndarray]:
    handle = submit(Request(operation, name=name, set=set))
    _finish([handle])
    return [numpy.asarray(handle.result().last_joined, numpy.int32)]


def _ask(what: str, set: int) -> numpy.ndarray:
    library = _abi.library()
    core.require_initialised()
    answers: dict = {
        "rank": library.rank,
        "local_rank": library.local_rank,
        "local_size": library.local_size,
        "size": lambda: library.set_size(set),
        "included": lambda: int(library.set_rank(set) >= 0),
    }
    return numpy.asarray(answers[what](), numpy.int32)


def _later_rows(tensor: Any) -> Any:
    shape = tf.TensorShape(tensor.shape)
    if shape.rank is None or shape.rank == 0:
        return tf.TensorShape([None]) if shape.rank == 0 else shape
    return tf.TensorShape([None]).concatenate(shape[1:])


class Plain:
    """The same methods as Compiled."""

    compiled = False

    def __init__(self) -> None:
        withdraw_on_ctrl_c(_withdraw_all)

    def _run(
        self,
        function: Callable[..., Any],
        inputs: Sequence[Any],
        dtypes: Sequence[Any],
        shapes: Sequence[Any],
        node: Optional[str],
        name: str,
    ) -> List[Any]:
        """function(*inputs, name) now, or when the graph runs."""
        if tf.executing_eagerly():
            results = function(*[numpy.asarray(each) for each in inputs], name or None)
            return [
                tf.convert_to_tensor(result, dtype) for result, dtype in zip(results, dtypes)
            ]
        graph = tf.compat.v1.get_default_graph()
        own = graph.unique_name(node or "farandole", mark_as_used=True)
        if name == "*/":
            own = own.rsplit("/", 1)[-1]

        def call(*values: Any) -> Any:
            return function(*values, own)

        inputs = [tf.convert_to_tensor(each) for each in inputs]
        in_function = hasattr(graph, "outer_graph")
        before = None if in_function else getattr(graph, "_farandole_before", None)
        with tf.control_dependencies([] if before is None else [before]):
            outputs = tf.numpy_function(call, inputs, list(dtypes), name=node)
        outputs = list(outputs) if isinstance(outputs, (list, tuple)) else [outputs]
        if not in_function and graph._get_control_flow_context() is None:
            graph._farandole_before = outputs[0].op
        for output, shape in zip(outputs, shapes):
            output.set_shape(shape)
        return outputs

    def _reduction(
        self,
        operation: int,
        what: str,
        tensors: Sequence[Any],
        node: Optional[str],
        name: str,
        how: Reduction,
    ) -> List[Any]:
        tensors = [tf.convert_to_tensor(each) for each in tensors]
        same_shape = operation == _abi.ALLREDUCE
        return self._run(
            lambda *all: _reduce(operation, what, all[:-1], all[-1], how),
            tensors,
            [each.dtype for each in tensors],
            [each.shape if same_shape else _later_rows(each) for each in tensors],
            node,
            name,
        )

    def grouped_allreduce(
        self, tensors: Sequence[Any], node: Optional[str], name: str, how: Reduction
    ) -> List[Any]:
        return self._reduction(_abi.ALLREDUCE, "allreduce", tensors, node, name, how)

    def allreduce(self, tensor: Any, node: Optional[str], name: str, how: Reduction) -> Any:
        return self.grouped_allreduce([tensor], node, name, how)[0]

    def grouped_reducescatter(
        self, tensors: Sequence[Any], node: Optional[str], name: str, how: Reduction
    ) -> List[Any]:
        return self._reduction(_abi.REDUCESCATTER, "reducescatter", tensors, node, name, how)

    def reducescatter(self, tensor: Any, node: Optional[str], name: str, how: Reduction) -> Any:
        return self.grouped_reducescatter([tensor], node, name, how)[0]

    def grouped_allgather(
        self, tensors: Sequence[Any], node: Optional[str], name: str, set: int
    ) -> Tuple[List[Any], List[Any]]:
        count = len(tensors)
        results = self._run(
            lambda *all: _gather(all[:-1], all[-1], set),
            tensors,
            [each.dtype for each in tensors] + [tf.int64] * count,
            [_later_rows(each) for each in tensors] + [[None]] * count,
            node,
            name,
        )
        return results[:count], results[count:]

    def allgather(self, tensor: Any, node: Optional[str], name: str, set: int) -> Tuple[Any, Any]:
        gathered, rows = self.grouped_allgather([tensor], node, name, set)
        return gathered[0], rows[0]

    def alltoall(
        self, tensor: Any, splits: Any, node: Optional[str], name: str, set: int
    ) -> Tuple[Any, Any]:
        received, rows = self._run(
            lambda value, parts, own: _exchange(value, parts, own, set),
            [tensor, splits],
            [tensor.dtype, tf.int32],
            [_later_rows(tensor), [None]],
            node,
            name,
        )
        return received, rows

    def broadcast(self, tensor: Any, root: int, node: Optional[str], name: str, set: int) -> Any:
        return self._run(
            lambda value, own: _do(_abi.BROADCAST, "broadcast", [value], own, set, root=root)[0],
            [tensor],
            [tensor.dtype],
            [tensor.shape],
            node,
            name,
        )[0]

    def barrier(self, node: Optional[str], name: str, set: int) -> Any:
        meet = lambda own: _meet(_abi.BARRIER, own, set)  # noqa: E731
        return self._run(meet, [], [tf.int32], [[]], node, name)[0]

    def join(self, node: Optional[str], name: str, set: int) -> Any:
        # Joins have no names: every rank joins once at a time.
        meet = lambda own: _meet(_abi.JOIN, None, set)  # noqa: E731
        return self._run(meet, [], [tf.int32], [[]], node, name)[0]

    def query(self, what: str, node: Optional[str], set: int) -> Any:
        return self._run(
            lambda own: [_ask(what, set)], [], [tf.int32], [[]], node or "farandole_query", ""
        )[0]
