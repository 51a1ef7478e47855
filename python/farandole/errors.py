"""What can go wrong. All exceptions are `Error`, a RuntimeError that knows rank, host and tensor.

`OperationFailed` and its subclasses are failures of an operation that was started; the others say
that the call itself was wrong. Each code of the C ABI has one exception (`BY_CODE`), of the same
name but for `RankLost`, which is FARANDOLE_PEER_LOST.
"""

from __future__ import annotations

from . import _abi


class Error(RuntimeError):
    """`rank` is the rank at fault or -1; `host` and `tensor` may be empty."""

    code: int = _abi.INTERNAL

    def __init__(self, message: str, rank: int = -1, host: str = "", tensor: str = "") -> None:
        super().__init__(message)
        self.rank = rank
        self.host = host
        self.tensor = tensor


class InvalidArgument(Error, ValueError):
    """The call is wrong; nothing was started."""

    code = _abi.INVALID_ARGUMENT


class DuplicateName(Error, ValueError):
    """An operation of that name is in flight in that process set."""

    code = _abi.DUPLICATE_NAME


class NotInitialised(Error, ValueError):
    """init() has not been called, or shutdown() has."""

    code = _abi.NOT_INITIALISED


class Forked(Error):
    """This process was forked from a rank (a data-loading worker, say) and is not one itself."""

    code = _abi.FORKED


class Timeout(Error, TimeoutError):
    """Not done yet: wait again, or cancel."""

    code = _abi.TIMEOUT


class OutOfMemory(Error, MemoryError):
    """No shared memory left; the message says how much is missing."""

    code = _abi.OUT_OF_MEMORY


class LibraryNotFound(Error, ImportError):
    """libfarandole.so was not found, or does not fit this package."""

    code = _abi.UNAVAILABLE


class OperationFailed(Error):
    """An operation was started and did not succeed."""


class Mismatch(OperationFailed):
    """Ranks disagree about dtype, shape, reduction operator, root or scale. The job can go on."""

    code = _abi.MISMATCH


class RankLost(OperationFailed):
    """A rank died, or left while it was needed. Every later operation fails the same way.

    FARANDOLE_PEER_LOST in C, Code::kPeerLost in C++; `rank` is the one that was lost.
    """

    code = _abi.PEER_LOST


class Cancelled(OperationFailed):
    """cancel() was called in time."""

    code = _abi.CANCELLED


class ShutDown(OperationFailed):
    """shutdown() was called on this rank while the operation was in flight."""

    code = _abi.SHUTDOWN


class Unavailable(OperationFailed):
    """An external resource is missing: a socket, a file, the agent."""

    code = _abi.UNAVAILABLE


class Internal(OperationFailed):
    """A defect of Farandole, or a rank that breaks the protocol."""

    code = _abi.INTERNAL


BY_CODE: dict[int, type[Error]] = {
    kind.code: kind
    for kind in (
        InvalidArgument,
        Mismatch,
        DuplicateName,
        RankLost,
        Timeout,
        Cancelled,
        ShutDown,
        OutOfMemory,
        Unavailable,
        Forked,
        NotInitialised,
        Internal,
    )
}


def make(code: int, message: str, rank: int = -1, host: str = "", tensor: str = "") -> Error:
    """The exception for a code of the library."""
    return BY_CODE.get(code, Internal)(message, rank, host, tensor)
