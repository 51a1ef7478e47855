"""Who this process is in its job. `life` fills it in and empties it."""

from __future__ import annotations

from typing import NamedTuple

from .errors import NotInitialised


class Identity(NamedTuple):
    rank: int
    size: int
    local_rank: int
    local_size: int
    cross_rank: int
    cross_size: int


_identity: Identity | None = None
_generation = 0


def enter(identity: Identity) -> None:
    global _identity, _generation
    _identity = identity
    _generation += 1


def leave() -> None:
    global _identity
    _identity = None


def is_initialised() -> bool:
    return _identity is not None


def generation() -> int:
    """Counts this process's inits; 0 before the first."""
    return _generation


def require_initialised() -> Identity:
    if _identity is None:
        raise NotInitialised("Farandole has not been initialised: call init() first")
    return _identity


def rank() -> int:
    """These also answer in a fork child, where operations do not work."""
    return require_initialised().rank


def size() -> int:
    return require_initialised().size


def local_rank() -> int:
    return require_initialised().local_rank


def local_size() -> int:
    return require_initialised().local_size


def cross_rank() -> int:
    return require_initialised().cross_rank


def cross_size() -> int:
    return require_initialised().cross_size


def is_homogeneous() -> bool:
    """Whether all machines have equally many ranks."""
    identity = require_initialised()
    return identity.local_size * identity.cross_size == identity.size
