"""The operations without compiled code: Python functions that TensorFlow calls and that wait.

In tf.function each blocks a thread of TensorFlow until it is done; TensorFlow puts them in a row by
itself. In graphs of tf.compat.v1 nothing orders them, ranks may run them in any order, and there
may be fewer threads than operations in a step. There an operation is started without waiting, then
waited for under a lock of the session's, for which TensorFlow itself waits without a thread: at
most one thread is blocked, and all operations of a step get started.
"""

from __future__ import annotations

import contextlib
import itertools
import threading
from typing import Any, Callable, NamedTuple, Sequence

import numpy
import tensorflow as tf

from .. import _abi, core
from .. import numpy as arrays
from .._library import library
from ..errors import Cancelled, Error
from ..handles import Handle, Request, submit, submit_group
from ._reduction import Reduction
from .interrupts import withdraw_on_ctrl_c

_waiting: set[Handle] = set()
_lock = threading.Lock()


def _withdraw_all() -> None:
    with _lock:
        handles = list(_waiting)
    for handle in handles:
        with contextlib.suppress(Error):  # the job is over
            handle.cancel()


class _Started(NamedTuple):
    """Operations in flight, several as one group, and the arrays they work with."""

    parts: Sequence[Handle]
    sources: Sequence[Any] = ()
    outputs: Sequence[Any] = ()  # None where the result is not known to be of the input's shape

    def done(self) -> bool:
        return all(part.done() for part in self.parts)

    def wait(self) -> None:
        """All are waited for even if one fails: none may write into memory later."""
        failure: BaseException | None = None
        with _lock:
            _waiting.update(self.parts)
        try:
            for part in self.parts:
                try:
                    part.wait()
                except Exception as error:
                    failure = failure or error
        finally:
            with _lock:
                _waiting.difference_update(self.parts)
        if failure is not None:
            raise failure

    def results(self) -> list[numpy.ndarray]:
        return self.results_and_rows()[0]

    def results_and_rows(self) -> tuple[list[numpy.ndarray], list[Any]]:
        """The rows are those from each member."""
        if self.outputs[0] is not None:
            return list(self.outputs), []
        owned = [arrays._owned(part, each.dtype) for part, each in zip(self.parts, self.sources)]
        return [result for result, _ in owned], [rows for _, rows in owned]


class _Table:
    """What sessions have started and not yet finished, by number."""

    def __init__(self) -> None:
        self._numbers = itertools.count()
        self._started: dict[int, _Started] = {}
        self._left: set[int] = set()  # of steps that failed: TensorFlow does not come for them

    def start(self, begin: Callable[[], _Started]) -> int:
        with _lock:
            for number in list(self._left):
                if self._started[number].done():
                    self._left.discard(number)
                    del self._started[number]
        try:
            started = begin()
        except BaseException:
            self._leave_all()
            raise
        with _lock:
            number = next(self._numbers)
            self._started[number] = started
            _waiting.update(started.parts)
        return number

    def wait(self, number: int) -> int:
        with contextlib.suppress(Exception):  # finish() raises it, without the lock
            self._get(number).wait()
        return number

    def finish(self, number: int) -> _Started:
        started = self._get(number)
        with _lock:
            self._left.discard(number)
            self._started.pop(number, None)
        try:
            started.wait()
        except BaseException:
            self._leave_all()
            raise
        return started

    def _get(self, number: int) -> _Started:
        with _lock:
            started = self._started.get(number)
        if started is None:
            raise Cancelled("another operation of this step has failed")
        return started

    def _leave_all(self) -> None:
        """A step fails on all ranks: the next one finds nothing of it in flight."""
        with _lock:
            self._left.update(self._started)
        _withdraw_all()


_table = _Table()


def _start(
    operation: int, what: str, values: Sequence[Any], name: str | None, set: int, **fields: Any
) -> _Started:
    """Several values are one group."""
    same_shape = operation in (_abi.ALLREDUCE, _abi.BROADCAST)
    requests: list[Request] = []
    outputs: list[Any] = []
    sources: list[Any] = []
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
    return _Started(parts, sources, outputs)


def _gathered(started: _Started) -> list[numpy.ndarray]:
    """The gathered arrays, then the rows of each."""
    gathered, rows = started.results_and_rows()
    return gathered + [numpy.asarray(each, numpy.int64) for each in rows]


def _start_exchange(value: Any, splits: Any, name: str | None, set: int) -> _Started:
    given = [int(each) for each in splits]
    return _start(_abi.ALLTOALL, "alltoall", [value], name, set, splits=given or None)


def _exchanged(started: _Started) -> list[numpy.ndarray]:
    received, rows = started.results_and_rows()
    return [*received, numpy.asarray(rows[0], numpy.int32)]


def _start_meeting(operation: int, name: str | None, set: int) -> _Started:
    return _Started([submit(Request(operation, name=name, set=set))])


def _met(started: _Started) -> list[numpy.ndarray]:
    return [numpy.asarray(started.parts[0].result().last_joined, numpy.int32)]


def _ask(what: str, set: int) -> numpy.ndarray:
    found = library()
    core.require_initialised()
    answers: dict[str, Callable[[], int]] = {
        "rank": found.rank,
        "local_rank": found.local_rank,
        "local_size": found.local_size,
        "size": lambda: found.set_size(set),
        "included": lambda: int(found.set_rank(set) >= 0),
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
        start: Callable[..., _Started],
        collect: Callable[[_Started], list[numpy.ndarray]],
        inputs: Sequence[Any],
        dtypes: Sequence[Any],
        shapes: Sequence[Any],
        node: str | None,
        name: str,
    ) -> list[Any]:
        """collect(start(*inputs, name)) when it is done: now, or when the graph runs."""

        def call(*values: Any) -> list[numpy.ndarray]:
            started = start(*values)
            started.wait()
            return collect(started)

        if tf.executing_eagerly():
            results = call(*[numpy.asarray(each) for each in inputs], name or None)
            return [tf.convert_to_tensor(result, dtype) for result, dtype in zip(results, dtypes)]
        graph = tf.compat.v1.get_default_graph()
        own = scope = graph.unique_name(node or "farandole", mark_as_used=True)
        if name == "*/":
            own = own.rsplit("/", 1)[-1]
        inputs = [tf.convert_to_tensor(each) for each in inputs]
        with tf.name_scope(scope + "/"):
            if hasattr(graph, "outer_graph"):
                outputs = tf.numpy_function(lambda *all: call(*all, own), inputs, list(dtypes))
            else:
                outputs = self._in_session(
                    lambda *all: start(*all, own), collect, inputs, list(dtypes)
                )
        outputs = list(outputs) if isinstance(outputs, (list, tuple)) else [outputs]
        for output, shape in zip(outputs, shapes):
            output.set_shape(shape)
        return outputs

    def _in_session(
        self,
        start: Callable[..., _Started],
        collect: Callable[[_Started], list[numpy.ndarray]],
        inputs: Sequence[Any],
        dtypes: Sequence[Any],
    ) -> Any:
        def begin(*values: Any) -> Any:
            return numpy.int64(_table.start(lambda: start(*values)))

        number = tf.numpy_function(begin, inputs, tf.int64, name="start")
        mutex = tf.raw_ops.MutexV2(shared_name="farandole")
        with tf.control_dependencies([number]):
            lock = tf.raw_ops.MutexLock(mutex=mutex)
        with tf.control_dependencies([lock]):
            number = tf.numpy_function(_table.wait, [number], tf.int64, name="wait")
        with tf.control_dependencies([number]):
            unlock = tf.raw_ops.ConsumeMutexLock(mutex_lock=lock)  # held until then
        with tf.control_dependencies([unlock]):
            return tf.numpy_function(
                lambda each: collect(_table.finish(each)), [number], dtypes, name="finish"
            )

    def _reduction(
        self,
        operation: int,
        what: str,
        tensors: Sequence[Any],
        node: str | None,
        name: str,
        how: Reduction,
    ) -> list[Any]:
        tensors = [tf.convert_to_tensor(each) for each in tensors]
        same_shape = operation == _abi.ALLREDUCE
        return self._run(
            lambda *all: _start(
                operation,
                what,
                all[:-1],
                all[-1],
                how.set,
                op=int(how.op),
                prescale=how.prescale,
                postscale=how.postscale,
            ),
            _Started.results,
            tensors,
            [each.dtype for each in tensors],
            [each.shape if same_shape else _later_rows(each) for each in tensors],
            node,
            name,
        )

    def grouped_allreduce(
        self, tensors: Sequence[Any], node: str | None, name: str, how: Reduction
    ) -> list[Any]:
        return self._reduction(_abi.ALLREDUCE, "allreduce", tensors, node, name, how)

    def allreduce(self, tensor: Any, node: str | None, name: str, how: Reduction) -> Any:
        return self.grouped_allreduce([tensor], node, name, how)[0]

    def grouped_reducescatter(
        self, tensors: Sequence[Any], node: str | None, name: str, how: Reduction
    ) -> list[Any]:
        return self._reduction(_abi.REDUCESCATTER, "reducescatter", tensors, node, name, how)

    def reducescatter(self, tensor: Any, node: str | None, name: str, how: Reduction) -> Any:
        return self.grouped_reducescatter([tensor], node, name, how)[0]

    def grouped_allgather(
        self, tensors: Sequence[Any], node: str | None, name: str, set: int
    ) -> tuple[list[Any], list[Any]]:
        count = len(tensors)
        results = self._run(
            lambda *all: _start(_abi.ALLGATHER, "allgather", all[:-1], all[-1], set),
            _gathered,
            tensors,
            [each.dtype for each in tensors] + [tf.int64] * count,
            [_later_rows(each) for each in tensors] + [[None]] * count,
            node,
            name,
        )
        return results[:count], results[count:]

    def allgather(self, tensor: Any, node: str | None, name: str, set: int) -> tuple[Any, Any]:
        gathered, rows = self.grouped_allgather([tensor], node, name, set)
        return gathered[0], rows[0]

    def alltoall(
        self, tensor: Any, splits: Any, node: str | None, name: str, set: int
    ) -> tuple[Any, Any]:
        received, rows = self._run(
            lambda value, parts, own: _start_exchange(value, parts, own, set),
            _exchanged,
            [tensor, splits],
            [tensor.dtype, tf.int32],
            [_later_rows(tensor), [None]],
            node,
            name,
        )
        return received, rows

    def broadcast(self, tensor: Any, root: int, node: str | None, name: str, set: int) -> Any:
        return self._run(
            lambda value, own: _start(_abi.BROADCAST, "broadcast", [value], own, set, root=root),
            _Started.results,
            [tensor],
            [tensor.dtype],
            [tensor.shape],
            node,
            name,
        )[0]

    def barrier(self, node: str | None, name: str, set: int) -> Any:
        meet = lambda own: _start_meeting(_abi.BARRIER, own, set)  # noqa: E731
        return self._run(meet, _met, [], [tf.int32], [[]], node, name)[0]

    def join(self, node: str | None, name: str, set: int) -> Any:
        # Joins have no names: every rank joins once at a time.
        meet = lambda own: _start_meeting(_abi.JOIN, None, set)  # noqa: E731
        return self._run(meet, _met, [], [tf.int32], [[]], node, name)[0]

    def query(self, what: str, node: str | None, set: int) -> Any:
        if tf.executing_eagerly():
            return tf.convert_to_tensor(_ask(what, set))
        answer = tf.numpy_function(
            lambda: _ask(what, set), [], tf.int32, name=node or "farandole_query"
        )
        answer.set_shape([])
        return answer
