"""torch.distributed's store over Farandole's own messages: PyTorch opens no port.

The first rank keeps the keys; the others ask it (store_server.py).
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import threading
import time
from datetime import timedelta
from typing import Any

import torch  # noqa: F401 - loads the extension that has the base class
from torch._C import _distributed_c10d as _c10d

from .. import core, errors
from .store_server import (
    BODY_TAG,
    FIRST_ANSWER_TAG,
    HEADER,
    MOST_BYTES,
    REQUEST_TAG,
    TAGS,
    Channel,
    Keys,
    Server,
)

_FIRST_PAUSE = 0.0005
_LONGEST_PAUSE = 0.05


class _Answer:
    """What the server says to one request."""

    def __init__(self, channel: Channel, tag: int) -> None:
        self._channel = channel
        self._tag = tag
        self._header = channel.receive(0, tag, HEADER)
        self._body: Any = None

    def take(self, limit: float | None) -> bytes:
        """Waits for that many seconds; may be called again after a Timeout."""
        end = None if limit is None else time.monotonic() + limit

        def wait(handle: Any) -> None:
            try:
                handle.wait(None if end is None else max(0.0, end - time.monotonic()))
            except errors.Timeout:
                raise errors.Timeout(
                    f"the store on rank 0 has not answered within {limit:g} s: is it stopped?"
                ) from None

        memory, handle = self._header
        wait(handle)
        count = int.from_bytes(bytes(memory)[:8], "little")
        if count > MOST_BYTES:
            raise errors.Internal("the store's answer makes no sense")
        if self._body is None:
            self._body = self._channel.receive(0, self._tag + 1, count)
        memory, handle = self._body
        wait(handle)
        return bytes(memory)[:count]

    def drop(self) -> None:
        with contextlib.suppress(errors.Error):  # the job is over
            self.take(None)


class Store(_c10d.Store):
    """One per process and init; may be used from any thread."""

    def __init__(self) -> None:
        super().__init__()
        self._limit = 300.0
        self._channel = Channel()
        self._keys: Keys | None = None
        self._calls = itertools.count()
        self._asking = threading.Lock()
        self._pid = os.getpid()
        if core.rank() == 0:
            self._keys = Keys()
            if core.size() > 1:
                self._server = Server(self._channel, self._keys)

    def _ask(self, **request: Any) -> Any:
        if self._keys is not None:
            answer = self._keys.answer(request)
        else:
            answer = self._ask_server(json.dumps(request).encode())
        if "error" in answer:
            raise errors.Unavailable(f"the store refused {request.get('do')}: {answer['error']}")
        return answer.get("value")

    def _ask_server(self, data: bytes) -> dict[str, Any]:
        tag = FIRST_ANSWER_TAG + 2 * (next(self._calls) % TAGS)
        header = len(data).to_bytes(8, "little") + tag.to_bytes(8, "little")
        answer = _Answer(self._channel, tag)
        with self._asking:  # a header and its body belong together
            self._channel.send(0, REQUEST_TAG, header.ljust(HEADER, b"\0"))
            self._channel.send(0, BODY_TAG, data)
        try:
            found: dict[str, Any] = json.loads(answer.take(self._limit))
            return found
        except (errors.Timeout, KeyboardInterrupt):
            # The server goes on with this rank only when its answer has been taken.
            threading.Thread(target=answer.drop, name="farandole-store-late", daemon=True).start()
            raise

    # ---- torch.distributed.Store

    @property
    def timeout(self) -> timedelta:
        return timedelta(seconds=self._limit)

    def set_timeout(self, timeout: timedelta) -> None:
        self._limit = timeout.total_seconds()

    def set(self, key: str, value: Any) -> None:
        self._ask(do="set", key=_text(key), value=_bytes(value).hex())

    def append(self, key: str, value: Any) -> None:
        self._ask(do="append", key=_text(key), value=_bytes(value).hex())

    def get(self, key: str) -> bytes:
        """Waits until the key is there."""
        key = _text(key)
        end = time.monotonic() + self._limit
        pause = _FIRST_PAUSE
        while True:
            value = self._ask(do="get", key=key)
            if value is not None:
                return bytes.fromhex(value)
            pause = self._pause(pause, end, [key])

    def wait(self, keys: list[str], timeout: timedelta | None = None) -> None:
        keys = [_text(key) for key in keys]
        limit = self._limit if timeout is None else timeout.total_seconds()
        end = time.monotonic() + limit
        pause = _FIRST_PAUSE
        while True:
            keys = self._ask(do="check", keys=keys)
            if not keys:
                return
            pause = self._pause(pause, end, keys)

    def _pause(self, seconds: float, end: float, keys: list[str]) -> float:
        if time.monotonic() >= end:
            raise errors.Timeout(
                "the store has not got "
                + ", ".join(repr(key) for key in keys[:3])
                + ": another rank should have set it; is it still there?"
            )
        time.sleep(seconds)
        return min(2 * seconds, _LONGEST_PAUSE)

    def add(self, key: str, value: int) -> int:
        return int(self._ask(do="add", key=_text(key), value=int(value)))

    def check(self, keys: list[str]) -> bool:
        return not self._ask(do="check", keys=[_text(key) for key in keys])

    def compare_set(self, key: str, expected_value: Any, desired_value: Any) -> bytes:
        return bytes.fromhex(
            self._ask(
                do="compare",
                key=_text(key),
                expected=_bytes(expected_value).hex(),
                value=_bytes(desired_value).hex(),
            )
        )

    def delete_key(self, key: str) -> bool:
        return bool(self._ask(do="delete", key=_text(key)))

    def num_keys(self) -> int:
        return int(self._ask(do="count"))

    def list_keys(self) -> list[str]:
        return list(self._ask(do="list"))

    def multi_get(self, keys: list[str]) -> list[bytes]:
        return [self.get(key) for key in keys]

    def multi_set(self, keys: list[str], values: list[Any]) -> None:
        for key, value in zip(keys, values):
            self.set(key, value)

    def has_extended_api(self) -> bool:
        return True

    def clone(self) -> Store:
        return self

    # C++ (PrefixStore) asks for these by the names of its own methods.
    compareSet = compare_set
    deleteKey = delete_key
    getNumKeys = num_keys
    multiGet = multi_get
    multiSet = multi_set
    hasExtendedApi = has_extended_api
    setTimeout = set_timeout
    listKeys = list_keys


def _text(key: Any) -> str:
    return key.decode("utf-8", "surrogateescape") if isinstance(key, bytes) else str(key)


def _bytes(value: Any) -> bytes:
    """C++ passes vectors of bytes in different forms in different versions."""
    if isinstance(value, str):
        return value.encode("utf-8", "surrogateescape")
    if isinstance(value, (list, tuple)):
        return bytes(each & 255 for each in value)
    return bytes(value)


_store: Store | None = None
_generation = -1


def store() -> Store:
    """This job's. The first call is collective: it makes a process set."""
    global _store, _generation
    if _store is None or _generation != core.generation() or _store._pid != os.getpid():
        _store = Store()
        _generation = core.generation()
    return _store
