"""Operations on raw memory.

They take addresses, a shape (a count is one) and a DType, reductions also the reduction operator
`op` (a ReduceOp), and return a Handle at once. Common options, by keyword only:

    name         without one, operations are matched between ranks by the order of calls
    process_set  a ProcessSet or its number; the world by default
    keep         an object that must stay alive until the operation is done
    will_wait    the calling thread waits at once: no other thread need be woken
    notify       notify(handle) is called on a Python thread once the operation is done
    prescale, postscale  every input is multiplied by one before a reduction, the result by the
                 other after it
    output_bytes  the size of the output: nothing is written behind it, and operations whose result
                 is larger end as Mismatch on all ranks; by default what the rank's own shape asks
                 for
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Callable, Optional, Sequence, TypedDict, Union

from . import _abi
from .dtypes import ReduceOp
from .handles import Handle, submit
from .process_sets import AnySet, set_id
from .requests import Fields, Request

if TYPE_CHECKING:
    from typing_extensions import Unpack

ANY_RANK = _abi.ANY_RANK

Shape = Union[int, Sequence[int]]
Notify = Optional[Callable[[Handle], None]]


class Common(TypedDict, total=False):
    """The options above."""

    name: str | None
    process_set: AnySet
    keep: object
    will_wait: bool
    notify: Notify
    prescale: float
    postscale: float
    output_bytes: int


def _start(
    operation: int,
    shape: Shape = (),
    *,
    name: str | None = None,
    process_set: AnySet = 0,
    keep: object = None,
    will_wait: bool = False,
    notify: Notify = None,
    **fields: Unpack[Fields],
) -> Handle:
    sizes = (shape,) if isinstance(shape, int) else shape
    fields["set"] = set_id(process_set)
    request = Request(operation, shape=sizes, name=name, will_wait=will_wait, keep=keep, **fields)
    return submit(request, notify)


def allreduce(
    input: int,
    output: int,
    shape: Shape,
    dtype: int,
    op: int = ReduceOp.SUM,
    **common: Unpack[Common],
) -> Handle:
    """output may equal input."""
    return _start(_abi.ALLREDUCE, shape, input=input, output=output, dtype=dtype, op=op, **common)


def allgather(
    input: int, shape: Shape, dtype: int, output: int = 0, **common: Unpack[Common]
) -> Handle:
    """First dimensions may differ. Without output, the Handle owns the result: result_view()."""
    return _start(_abi.ALLGATHER, shape, input=input, output=output, dtype=dtype, **common)


def broadcast(
    input: int, output: int, shape: Shape, dtype: int, root: int, **common: Unpack[Common]
) -> Handle:
    """root is a rank of the world. output may equal input."""
    return _start(
        _abi.BROADCAST, shape, input=input, output=output, dtype=dtype, root=root, **common
    )


def alltoall(
    input: int,
    shape: Shape,
    dtype: int,
    output: int = 0,
    splits: Sequence[int] | None = None,
    **common: Unpack[Common],
) -> Handle:
    """splits: rows for each member; without, equal parts. The result has the rows received."""
    return _start(
        _abi.ALLTOALL, shape, input=input, output=output, dtype=dtype, splits=splits, **common
    )


def reducescatter(
    input: int,
    shape: Shape,
    dtype: int,
    output: int = 0,
    op: int = ReduceOp.SUM,
    splits: Sequence[int] | None = None,
    **common: Unpack[Common],
) -> Handle:
    """splits: rows of each member; without, as even as possible, larger parts first."""
    return _start(
        _abi.REDUCESCATTER,
        shape,
        input=input,
        output=output,
        dtype=dtype,
        op=op,
        splits=splits,
        **common,
    )


def reduce(
    input: int,
    output: int,
    shape: Shape,
    dtype: int,
    root: int,
    op: int = ReduceOp.SUM,
    **common: Unpack[Common],
) -> Handle:
    """The result is at the root only; output may be 0 elsewhere."""
    return _start(
        _abi.REDUCE, shape, input=input, output=output, dtype=dtype, op=op, root=root, **common
    )


def gather(
    input: int, shape: Shape, dtype: int, root: int, output: int = 0, **common: Unpack[Common]
) -> Handle:
    """Like allgather, at the root only."""
    return _start(_abi.GATHER, shape, input=input, output=output, dtype=dtype, root=root, **common)


def scatter(
    input: int,
    shape: Shape,
    dtype: int,
    root: int,
    output: int = 0,
    splits: Sequence[int] | None = None,
    **common: Unpack[Common],
) -> Handle:
    """shape is that of the root's input; on other ranks its first dimension is ignored."""
    return _start(
        _abi.SCATTER,
        shape,
        input=input,
        output=output,
        dtype=dtype,
        root=root,
        splits=splits,
        **common,
    )


def send(
    input: int, shape: Shape, dtype: int, peer: int, tag: int = 0, **common: Unpack[Common]
) -> Handle:
    """peer is a rank of the world; matched by peer and tag, not by name."""
    return _start(_abi.SEND, shape, input=input, dtype=dtype, root=peer, tag=tag, **common)


def recv(
    output: int,
    shape: Shape,
    dtype: int,
    peer: int = ANY_RANK,
    tag: int = 0,
    **common: Unpack[Common],
) -> Handle:
    """From a rank of the world, or from any: result().source is the sender."""
    return _start(_abi.RECV, shape, output=output, dtype=dtype, root=peer, tag=tag, **common)


def barrier_async(**common: Unpack[Common]) -> Handle:
    return _start(_abi.BARRIER, **common)


def barrier(process_set: AnySet = 0, timeout: float | None = None) -> None:
    """Returns when all members have called it."""
    barrier_async(process_set=process_set).wait(timeout)


def join_async(*, process_set: AnySet = 0) -> Handle:
    return _start(_abi.JOIN, process_set=process_set)


def join(process_set: AnySet = 0) -> int:
    """This rank has no more data: it contributes neutral elements. Returns the last to join."""
    return join_async(process_set=process_set).result().last_joined
