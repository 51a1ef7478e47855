"""Elastic training, as far as a fixed world goes: State, commit, restore, sync, run.

The number of ranks is fixed: no rank is added, and a lost rank ends the job with an error.
"""

from __future__ import annotations

import copy
import functools
import queue
from typing import TYPE_CHECKING, Any, Callable

from . import core, objects
from .errors import OperationFailed, RankLost


class HostsUpdatedInterrupt(RuntimeError):
    """The set of hosts has changed. Farandole itself never raises it."""

    def __init__(self, skip_sync: bool = False) -> None:
        super().__init__("the set of hosts has changed")
        self.skip_sync = skip_sync


class State:
    """What must be the same on all ranks, and be put back after a failure."""

    def __init__(self, **kwargs: Any) -> None:
        self._host_messages: queue.Queue[Any] = queue.Queue()
        self._last_updated_timestamp = 0
        self._reset_callbacks: list[Callable[[], None]] = []

    def register_reset_callbacks(self, callbacks: list[Callable[[], None]]) -> None:
        self._reset_callbacks.extend(callbacks)

    def on_reset(self) -> None:
        self._host_messages = queue.Queue()
        self.reset()
        for callback in self._reset_callbacks:
            callback()

    def on_hosts_updated(self, timestamp: Any, update_res: Any) -> None:
        self._host_messages.put((timestamp, update_res))

    def commit(self) -> None:
        """Keeps the present values for restore()."""
        self.save()
        self.check_host_updates()

    def check_host_updates(self) -> None:
        """Raises HostsUpdatedInterrupt on all ranks if one of them was told of new hosts."""
        latest = self._last_updated_timestamp
        everything = 0
        while not self._host_messages.empty():
            timestamp, update = self._host_messages.get()
            if timestamp > latest:
                latest = timestamp
                everything |= int(update)
        told = objects.allgather_object((latest, everything))
        newest = max(timestamp for timestamp, _ in told)
        if newest > self._last_updated_timestamp:
            self._last_updated_timestamp = newest
            # Only removals: the others have the same state already.
            raise HostsUpdatedInterrupt(all(update == 1 for _, update in told if update))

    def save(self) -> None:
        raise NotImplementedError

    def restore(self) -> None:
        raise NotImplementedError

    def sync(self) -> None:
        raise NotImplementedError

    def reset(self) -> None:
        pass


class ObjectState(State):
    """Attributes that are ordinary picklable objects."""

    if TYPE_CHECKING:  # those that were given by keyword

        def __getattr__(self, name: str) -> Any: ...

    def __init__(
        self,
        bcast_object: Callable[..., Any] = objects.broadcast_object,
        get_rank: Callable[[], int] = core.rank,
        **kwargs: Any,
    ) -> None:
        self._bcast_object = bcast_object
        self._rank = get_rank
        self._saved_state: dict[str, Any] = kwargs
        for name, value in kwargs.items():
            setattr(self, name, value)
        super().__init__()

    def save(self) -> None:
        self._saved_state = {name: copy.deepcopy(getattr(self, name)) for name in self._saved_state}

    def restore(self) -> None:
        for name, value in self._saved_state.items():
            setattr(self, name, copy.deepcopy(value))

    def sync(self) -> None:
        if not self._saved_state:
            return
        current = {name: getattr(self, name) for name in self._saved_state}
        self._saved_state = self._bcast_object(current)
        self.restore()


def run(func: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator: synchronises `state`, then calls func(state, …) until it returns."""

    @functools.wraps(func)
    def wrapper(state: State, *args: Any, **kwargs: Any) -> Any:
        skip_sync = False
        while True:
            if not skip_sync:
                state.sync()
            try:
                return func(state, *args, **kwargs)
            except HostsUpdatedInterrupt as update:
                skip_sync = update.skip_sync
                state.on_reset()
            except RankLost as error:
                raise RankLost(
                    f"{error}. The number of ranks cannot change: the job ends; start it again "
                    "and load the last checkpoint",
                    error.rank,
                    error.host,
                    error.tensor,
                ) from error
            except OperationFailed:
                state.restore()
                raise

    return wrapper


def run_fn(func: Callable[..., Any], reset: Callable[[], None] | None = None) -> Any:
    return run(func)
