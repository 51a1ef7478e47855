"""What can go wrong. All exceptions are `Error`, a RuntimeError that knows rank, host and tensor.

`OperationFailed` and its subclasses come out of an operation that was started; the others say that
the call itself was wrong.
"""

from __future__ import annotations


class Error(RuntimeError):
    """`rank` is the rank at fault or -1; `host` and `tensor` may be empty."""

    code = 13

    def __init__(self, message: str, rank: int = -1, host: str = "", tensor: str = "") -> None:
        super().__init__(message)
        self.rank = rank
        self.host = host
        self.tensor = tensor


class InvalidArgument(Error, ValueError):
    """The call is wrong; nothing was started."""

    code = 1


class DuplicateName(Error, ValueError):
    """An operation of that name is in flight in that process set."""

    code = 3


class NotInitialised(Error, ValueError):
    """init() has not been called, or shutdown() has."""

    code = 12


class Forked(Error):
    """The process was forked from a rank (a data-loading worker, say) and is not one itself."""

    code = 11


class Timeout(Error, TimeoutError):
    """Not done yet: wait again, or cancel."""

    code = 5


class OutOfMemory(Error, MemoryError):
    """No shared memory left; the message says how much is missing."""

    code = 9


class LibraryNotFound(Error, ImportError):
    """libfarandole.so was not found, or does not fit this package."""

    code = 10


class OperationFailed(Error):
    """An operation was started and did not succeed."""


class Mismatch(OperationFailed):
    """Ranks disagree about dtype, shape, op, root or scale. The job can go on."""

    code = 2


class RankLost(OperationFailed):
    """A rank died, or left while it was needed. Every later operation fails the same way."""

    code = 4


class Cancelled(OperationFailed):
    """cancel() was called in time."""

    code = 7


class ShutDown(OperationFailed):
    """shutdown() was called on this rank while the operation was in flight."""

    code = 8


class Unavailable(OperationFailed):
    """Something outside could not be had: a socket, a file, the agent."""

    code = 10


class Internal(OperationFailed):
    """A defect of Farandole itself."""

    code = 13


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
