"""Requests: descriptions of operations to start. The only place that fills a farandole_request."""

from __future__ import annotations

from ctypes import Array, c_int64, sizeof
from typing import TYPE_CHECKING, Sequence, TypedDict

from . import _abi

if TYPE_CHECKING:
    from typing_extensions import Unpack

# What FARANDOLE_REQUEST_INIT is in C. A copy of it, and names for what differs, are quicker than a
# constructor with all fields.
_INITIAL = _abi.Request(
    struct_size=sizeof(_abi.Request),
    prescale=1.0,
    postscale=1.0,
    output_bytes=_abi.BYTES_UNKNOWN,
)
_copy = _abi.Request.from_buffer_copy

_MOST_SHAPES = 4096
_shapes: dict[tuple[int, ...], Array[c_int64]] = {}


def _numbers(values: Sequence[int]) -> Array[c_int64]:
    """As a C array, cached: the same few shapes recur. The library copies it."""
    key = tuple(values)
    found = _shapes.get(key)
    if found is None:
        if len(_shapes) >= _MOST_SHAPES:
            _shapes.clear()
        found = _shapes[key] = (c_int64 * len(key))(*key)
    return found


def make(
    operation: int,
    shape: Sequence[int] = (),
    *,
    input: int = 0,
    output: int = 0,
    output_bytes: int = _abi.BYTES_UNKNOWN,
    dtype: int = 0,
    op: int = 0,
    root: int = 0,
    set: int = 0,
    flags: int = 0,
    tag: int = 0,
    name: str | None = None,
    splits: Sequence[int] | None = None,
    prescale: float = 1.0,
    postscale: float = 1.0,
    group: int = 0,
    queue: int | None = None,
    queue_tag: int = 0,
) -> _abi.Request:
    """For farandole_submit. The names are those of farandole.h, which says what they mean."""
    made = _copy(_INITIAL)
    made.operation = operation
    made.dtype = dtype
    made.op = op
    made.set = set
    made.flags = flags
    made.input = input
    made.output = output
    made.output_bytes = output_bytes
    if shape:
        made.shape = _numbers(shape)
        made.ndim = len(shape)
    if root:
        made.root = root
    if tag:
        made.tag = tag
    if name is not None:
        made.name = name.encode()
    if splits is not None:
        made.splits = _numbers(splits)
        made.nsplits = len(splits)
    if prescale != 1.0:
        made.prescale = prescale
    if postscale != 1.0:
        made.postscale = postscale
    if group:
        made.group = group
    if queue is not None:
        made.queue = queue
        made.queue_tag = queue_tag
    return made


class Fields(TypedDict, total=False):
    """The arguments of make() that a caller of Request may give."""

    input: int
    output: int
    output_bytes: int
    dtype: int
    op: int
    root: int
    set: int
    tag: int
    splits: Sequence[int] | None
    prescale: float
    postscale: float
    group: int


class Request:
    """The description of an operation, and the buffers to keep alive until it is done."""

    __slots__ = ("keep", "name", "raw")

    def __init__(
        self,
        operation: int,
        *,
        shape: Sequence[int] = (),
        name: str | None = None,
        will_wait: bool = False,
        keep: object = None,
        **fields: Unpack[Fields],
    ) -> None:
        flags = _abi.FLAG_WILL_WAIT if will_wait else 0
        self.raw = make(operation, shape, name=name, flags=flags, **fields)
        self.keep = keep
        self.name = name
