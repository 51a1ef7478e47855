"""Operations on raw memory.

They take addresses, a shape (a count is one) and a DType, and return a Handle at once. The caller
passes in `keep` whatever must stay alive meanwhile. `notify(handle)` is called on a Python thread
once the operation is done. Without a name, operations are matched between ranks by the
order of calls.
"""

from __future__ import annotations

from typing import Any, Callable, Optional, Sequence, Union

from . import _abi
from .dtypes import ReduceOp
from .handles import Handle, Request, submit
from .process_sets import AnySet, set_id

ANY_RANK = _abi.ANY_RANK

Shape = Union[int, Sequence[int]]


def _shape(shape: Shape) -> Sequence[int]:
    return (shape,) if isinstance(shape, int) else shape


def allreduce(
    input: int,
    output: int,
    shape: Shape,
    dtype: int,
    op: int = ReduceOp.SUM,
    *,
    name: Optional[str] = None,
    process_set: AnySet = 0,
    prescale: float = 1.0,
    postscale: float = 1.0,
    keep: Any = None,
    will_wait: bool = False,
    notify: Optional[Callable[[Handle], None]] = None,
) -> Handle:
    """output may equal input."""
    request = Request(
        _abi.ALLREDUCE,
        input=input,
        output=output,
        shape=_shape(shape),
        dtype=dtype,
        op=op,
        set=set_id(process_set),
        name=name,
        prescale=prescale,
        postscale=postscale,
        will_wait=will_wait,
        keep=keep,
    )
    return submit(request, notify)


def allgather(
    input: int,
    shape: Shape,
    dtype: int,
    output: int = 0,
    *,
    name: Optional[str] = None,
    process_set: AnySet = 0,
    keep: Any = None,
    will_wait: bool = False,
    notify: Optional[Callable[[Handle], None]] = None,
) -> Handle:
    """First dimensions may differ. Without output the Handle owns the result: result_view()."""
    request = Request(
        _abi.ALLGATHER,
        input=input,
        output=output,
        shape=_shape(shape),
        dtype=dtype,
        set=set_id(process_set),
        name=name,
        will_wait=will_wait,
        keep=keep,
    )
    return submit(request, notify)


def broadcast(
    input: int,
    output: int,
    shape: Shape,
    dtype: int,
    root: int,
    *,
    name: Optional[str] = None,
    process_set: AnySet = 0,
    keep: Any = None,
    will_wait: bool = False,
    notify: Optional[Callable[[Handle], None]] = None,
) -> Handle:
    """root is a rank of the world. output may equal input."""
    request = Request(
        _abi.BROADCAST,
        input=input,
        output=output,
        shape=_shape(shape),
        dtype=dtype,
        root=root,
        set=set_id(process_set),
        name=name,
        will_wait=will_wait,
        keep=keep,
    )
    return submit(request, notify)


def alltoall(
    input: int,
    shape: Shape,
    dtype: int,
    output: int = 0,
    splits: Optional[Sequence[int]] = None,
    *,
    name: Optional[str] = None,
    process_set: AnySet = 0,
    keep: Any = None,
    will_wait: bool = False,
    notify: Optional[Callable[[Handle], None]] = None,
) -> Handle:
    """splits: rows for each member; equal parts without. The result tells the rows received."""
    request = Request(
        _abi.ALLTOALL,
        input=input,
        output=output,
        shape=_shape(shape),
        dtype=dtype,
        splits=splits,
        set=set_id(process_set),
        name=name,
        will_wait=will_wait,
        keep=keep,
    )
    return submit(request, notify)


def reducescatter(
    input: int,
    shape: Shape,
    dtype: int,
    output: int = 0,
    op: int = ReduceOp.SUM,
    splits: Optional[Sequence[int]] = None,
    *,
    name: Optional[str] = None,
    process_set: AnySet = 0,
    prescale: float = 1.0,
    postscale: float = 1.0,
    keep: Any = None,
    will_wait: bool = False,
    notify: Optional[Callable[[Handle], None]] = None,
) -> Handle:
    """splits: rows of each member; without, as even as possible, larger parts first."""
    request = Request(
        _abi.REDUCESCATTER,
        input=input,
        output=output,
        shape=_shape(shape),
        dtype=dtype,
        op=op,
        splits=splits,
        set=set_id(process_set),
        name=name,
        prescale=prescale,
        postscale=postscale,
        will_wait=will_wait,
        keep=keep,
    )
    return submit(request, notify)


def reduce(
    input: int,
    output: int,
    shape: Shape,
    dtype: int,
    root: int,
    op: int = ReduceOp.SUM,
    *,
    name: Optional[str] = None,
    process_set: AnySet = 0,
    prescale: float = 1.0,
    postscale: float = 1.0,
    keep: Any = None,
    will_wait: bool = False,
    notify: Optional[Callable[[Handle], None]] = None,
) -> Handle:
    """The result is at the root only; output may be 0 elsewhere."""
    request = Request(
        _abi.REDUCE,
        input=input,
        output=output,
        shape=_shape(shape),
        dtype=dtype,
        op=op,
        root=root,
        set=set_id(process_set),
        name=name,
        prescale=prescale,
        postscale=postscale,
        will_wait=will_wait,
        keep=keep,
    )
    return submit(request, notify)


def gather(
    input: int,
    shape: Shape,
    dtype: int,
    root: int,
    output: int = 0,
    *,
    name: Optional[str] = None,
    process_set: AnySet = 0,
    keep: Any = None,
    will_wait: bool = False,
    notify: Optional[Callable[[Handle], None]] = None,
) -> Handle:
    """Like allgather, at the root only."""
    request = Request(
        _abi.GATHER,
        input=input,
        output=output,
        shape=_shape(shape),
        dtype=dtype,
        root=root,
        set=set_id(process_set),
        name=name,
        will_wait=will_wait,
        keep=keep,
    )
    return submit(request, notify)


def scatter(
    input: int,
    shape: Shape,
    dtype: int,
    root: int,
    output: int = 0,
    splits: Optional[Sequence[int]] = None,
    *,
    name: Optional[str] = None,
    process_set: AnySet = 0,
    keep: Any = None,
    will_wait: bool = False,
    notify: Optional[Callable[[Handle], None]] = None,
) -> Handle:
    """shape is that of the root's input; elsewhere only its dimensions behind the first count."""
    request = Request(
        _abi.SCATTER,
        input=input,
        output=output,
        shape=_shape(shape),
        dtype=dtype,
        root=root,
        splits=splits,
        set=set_id(process_set),
        name=name,
        will_wait=will_wait,
        keep=keep,
    )
    return submit(request, notify)


def send(
    input: int,
    shape: Shape,
    dtype: int,
    peer: int,
    tag: int = 0,
    *,
    process_set: AnySet = 0,
    keep: Any = None,
    will_wait: bool = False,
    notify: Optional[Callable[[Handle], None]] = None,
) -> Handle:
    """peer is a rank of the world."""
    request = Request(
        _abi.SEND,
        input=input,
        shape=_shape(shape),
        dtype=dtype,
        root=peer,
        tag=tag,
        set=set_id(process_set),
        will_wait=will_wait,
        keep=keep,
    )
    return submit(request, notify)


def recv(
    output: int,
    shape: Shape,
    dtype: int,
    peer: int = ANY_RANK,
    tag: int = 0,
    *,
    process_set: AnySet = 0,
    keep: Any = None,
    will_wait: bool = False,
    notify: Optional[Callable[[Handle], None]] = None,
) -> Handle:
    """From a rank of the world or from any; result().source tells from whom."""
    request = Request(
        _abi.RECV,
        output=output,
        shape=_shape(shape),
        dtype=dtype,
        root=peer,
        tag=tag,
        set=set_id(process_set),
        will_wait=will_wait,
        keep=keep,
    )
    return submit(request, notify)


def barrier_async(
    *,
    name: Optional[str] = None,
    process_set: AnySet = 0,
    notify: Optional[Callable[[Handle], None]] = None,
) -> Handle:
    return submit(Request(_abi.BARRIER, set=set_id(process_set), name=name), notify)


def barrier(process_set: AnySet = 0, timeout: Optional[float] = None) -> None:
    """Returns when all members have called it."""
    barrier_async(process_set=process_set).wait(timeout)


def join_async(*, process_set: AnySet = 0) -> Handle:
    return submit(Request(_abi.JOIN, set=set_id(process_set)))


def join(process_set: AnySet = 0) -> int:
    """No more data here: others' reductions see neutral elements. Returns the last rank to join."""
    return join_async(process_set=process_set).result().last_joined
