"""The operations without compiled code: Python functions that TensorFlow calls and that wait.

Each blocks a thread of TensorFlow, so they run strictly one after the other: tf.function orders
them by itself, in graphs of tf.compat.v1 each depends on the one before.
"""

from __future__ import annotations

from typing import Any, Callable, List, Optional, Sequence, Tuple

import numpy
import tensorflow as tf

from .. import _abi, core
from .. import numpy as arrays
from ..handles import Request, submit, submit_group


def _wait_all(parts: Sequence[Any]) -> None:
    """All are waited for even if one fails: none may write into memory later."""
    failure: Optional[BaseException] = None
    for part in parts:
        try:
            part.wait()
        except Exception as error:
            failure = failure or error
    if failure is not None:
        raise failure


def _reduce(
    values: Sequence[Any], name: Optional[str], op: int, pre: float, post: float, set: int
) -> List[numpy.ndarray]:
    single = len(values) == 1
    requests: List[Request] = []
    outputs: List[Any] = []
    for i, value in enumerate(values):
        own = name if single or name is None else f"{name}_{i}"
        request, output = arrays._reduce_request(value, op, own, pre, post, set)
        requests.append(request)
        outputs.append(output)
    _wait_all([submit(requests[0])] if single else submit_group(requests))
    return outputs


def _scatter(
    value: Any, name: Optional[str], op: int, pre: float, post: float, set: int
) -> numpy.ndarray:
    source, dtype = arrays._array(value, "reducescatter", name)
    handle = core.reducescatter(
        source.ctypes.data,
        source.shape,
        dtype,
        op=op,
        name=name,
        process_set=set,
        prescale=pre,
        postscale=post,
        keep=source,
    )
    return arrays._owned(handle, source.dtype)[0]


def _gather(value: Any, name: Optional[str], set: int) -> Tuple[numpy.ndarray, numpy.ndarray]:
    source, dtype = arrays._array(value, "allgather", name)
    handle = core.allgather(
        source.ctypes.data,
        source.shape or (1,),
        dtype,
        name=name,
        process_set=set,
        keep=source,
    )
    gathered, rows = arrays._owned(handle, source.dtype)
    return gathered, numpy.asarray(rows, numpy.int64)


def _exchange(
    value: Any, splits: Any, name: Optional[str], set: int
) -> Tuple[numpy.ndarray, numpy.ndarray]:
    given = [int(each) for each in splits]
    received, rows = arrays.alltoall(value, given or None, name, set)
    return received, numpy.asarray(rows, numpy.int32)


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

    def grouped_allreduce(
        self,
        tensors: Sequence[Any],
        node: Optional[str],
        name: str,
        op: int,
        pre: float,
        post: float,
        set: int,
    ) -> List[Any]:
        if not tensors:
            return []
        tensors = [tf.convert_to_tensor(each) for each in tensors]
        return self._run(
            lambda *all: _reduce(all[:-1], all[-1], op, pre, post, set),
            tensors,
            [each.dtype for each in tensors],
            [each.shape for each in tensors],
            node,
            name,
        )

    def allreduce(
        self,
        tensor: Any,
        node: Optional[str],
        name: str,
        op: int,
        pre: float,
        post: float,
        set: int,
    ) -> Any:
        return self.grouped_allreduce([tensor], node, name, op, pre, post, set)[0]

    def reducescatter(
        self,
        tensor: Any,
        node: Optional[str],
        name: str,
        op: int,
        pre: float,
        post: float,
        set: int,
    ) -> Any:
        return self._run(
            lambda value, own: [_scatter(value, own, op, pre, post, set)],
            [tensor],
            [tensor.dtype],
            [_later_rows(tensor)],
            node,
            name,
        )[0]

    def allgather(self, tensor: Any, node: Optional[str], name: str, set: int) -> Tuple[Any, Any]:
        gathered, rows = self._run(
            lambda value, own: _gather(value, own, set),
            [tensor],
            [tensor.dtype, tf.int64],
            [_later_rows(tensor), [None]],
            node,
            name,
        )
        return gathered, rows

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
            lambda value, own: [arrays.broadcast(value, root, own, set)],
            [tensor],
            [tensor.dtype],
            [tensor.shape],
            node,
            name,
        )[0]

    def barrier(self, node: Optional[str], name: str, set: int) -> Any:
        def wait(own: Optional[str]) -> List[Any]:
            core.barrier_async(name=own, process_set=set).wait()
            return [numpy.asarray(0, numpy.int32)]

        return self._run(wait, [], [tf.int32], [[]], node, name)[0]

    def join(self, node: Optional[str], name: str, set: int) -> Any:
        def wait(own: Optional[str]) -> List[Any]:
            return [numpy.asarray(core.join(set), numpy.int32)]

        return self._run(wait, [], [tf.int32], [[]], node, name)[0]

    def query(self, what: str, node: Optional[str], set: int) -> Any:
        return self._run(
            lambda own: [_ask(what, set)], [], [tf.int32], [[]], node or "farandole_query", ""
        )[0]
