"""torch.distributed's store over Farandole's own messages: PyTorch opens no port.

The first rank keeps the keys, and a thread of its answers requests. A request and its answer are each
a fixed header and a body, sent within a process set of the store's own, so they are authenticated like
everything else in the job. No message makes the server wait: whoever waits for a key asks again.
"""

from __future__ import annotations

import ctypes
import itertools
import json
import os
import threading
import time
from datetime import timedelta
from typing import Any, Dict, List, Optional, Tuple

import torch  # noqa: F401: the base class is of the extension that it loads
from torch._C import _distributed_c10d as _c10d

from .. import _abi, core, errors

_HEADER = 24
_REQUEST_TAG = 1
# Answers have a tag per client call; headers and bodies of one rank never mix.
_BODY_TAG = 2
_FIRST_ANSWER_TAG = 1 << 16
_TAGS = 1 << 15
_MOST_BYTES = 1 << 28
_FIRST_PAUSE = 0.0005
_LONGEST_PAUSE = 0.05


class _Channel:
    """Messages of bytes between the ranks of one process set."""

    def __init__(self) -> None:
        ranks = list(range(core.size()))
        number = ctypes.c_int32()
        array = (ctypes.c_int32 * len(ranks))(*ranks)
        _abi.check(_abi.library().add_set(array, len(ranks), ctypes.byref(number)))
        self.set = number.value

    def send(self, peer: int, tag: int, data: bytes, limit: float = 60) -> None:
        memory = (ctypes.c_char * max(1, len(data))).from_buffer_copy(data or b"\0")
        core.send(ctypes.addressof(memory), len(memory), core.DType.UINT8, peer, tag,
                  process_set=self.set, keep=memory).wait(limit)

    def receive(self, peer: int, tag: int, count: int, notify: Any = None) -> Tuple[Any, Any]:
        memory = (ctypes.c_char * max(1, count))()
        return memory, core.recv(ctypes.addressof(memory), len(memory), core.DType.UINT8, peer, tag,
                                 process_set=self.set, keep=memory, notify=notify)


class _Keys:
    """The keys and what can be done to them; every request is answered at once."""

    def __init__(self) -> None:
        self._values: Dict[str, bytes] = {}
        self._lock = threading.Lock()

    def answer(self, request: Dict[str, Any]) -> Dict[str, Any]:
        with self._lock:
            return getattr(self, "_do_" + request["do"])(request)

    def _do_set(self, request: Dict[str, Any]) -> Dict[str, Any]:
        self._values[request["key"]] = bytes.fromhex(request["value"])
        return {}

    def _do_append(self, request: Dict[str, Any]) -> Dict[str, Any]:
        key = request["key"]
        self._values[key] = self._values.get(key, b"") + bytes.fromhex(request["value"])
        return {}

    def _do_get(self, request: Dict[str, Any]) -> Dict[str, Any]:
        value = self._values.get(request["key"])
        return {"value": None if value is None else value.hex()}

    def _do_add(self, request: Dict[str, Any]) -> Dict[str, Any]:
        key = request["key"]
        number = int(self._values.get(key, b"0")) + int(request["value"])
        self._values[key] = str(number).encode()
        return {"value": number}

    def _do_compare(self, request: Dict[str, Any]) -> Dict[str, Any]:
        key, expected = request["key"], bytes.fromhex(request["expected"])
        desired = bytes.fromhex(request["value"])
        found = self._values.get(key)
        if found == expected or (found is None and not expected):
            found = self._values[key] = desired
        return {"value": (expected if found is None else found).hex()}

    def _do_delete(self, request: Dict[str, Any]) -> Dict[str, Any]:
        return {"value": self._values.pop(request["key"], None) is not None}

    def _do_count(self, _: Dict[str, Any]) -> Dict[str, Any]:
        return {"value": len(self._values)}

    def _do_check(self, request: Dict[str, Any]) -> Dict[str, Any]:
        return {"value": [key for key in request["keys"] if key not in self._values]}

    def _do_list(self, _: Dict[str, Any]) -> Dict[str, Any]:
        return {"value": list(self._values)}


class _Server:
    """Answers the other ranks, in a thread of the first one."""

    def __init__(self, channel: _Channel, keys: _Keys) -> None:
        self._channel = channel
        self._keys = keys
        self._generation = core.generation()
        threading.Thread(target=self._serve, name="farandole-store", daemon=True).start()

    def _serve(self) -> None:
        try:
            while True:
                # Not handle.wait(): a thread that waits there drives everybody's operations.
                arrived = threading.Event()
                memory, handle = self._channel.receive(
                    _abi.ANY_RANK, _REQUEST_TAG, _HEADER, lambda _: arrived.set())
                arrived.wait()
                self._answer(handle.result().source, bytes(memory))
        except errors.Error:
            return  # the job is over, or this rank has left it

    def _answer(self, rank: int, header: bytes) -> None:
        count, tag = int.from_bytes(header[:8], "little"), int.from_bytes(header[8:16], "little")
        if count > _MOST_BYTES or not 0 <= tag - _FIRST_ANSWER_TAG < 2 * _TAGS:
            return
        memory, handle = self._channel.receive(rank, _BODY_TAG, count)
        handle.wait(60)
        try:
            answer = self._keys.answer(json.loads(bytes(memory)[:count]))
        except Exception as error:  # noqa: BLE001: it is the asking rank's
            answer = {"error": f"{type(error).__name__}: {error}"}
        data = json.dumps(answer).encode()
        self._channel.send(rank, tag, len(data).to_bytes(8, "little").ljust(_HEADER, b"\0"))
        self._channel.send(rank, tag + 1, data)


class Store(_c10d.Store):
    """One per process and init; may be used from any thread."""

    def __init__(self) -> None:
        super().__init__()
        self._limit = 300.0
        self._channel = _Channel()
        self._keys: Optional[_Keys] = None
        self._calls = itertools.count()
        self._asking = threading.Lock()
        self._pid = os.getpid()
        if core.rank() == 0:
            self._keys = _Keys()
            if core.size() > 1:
                self._server = _Server(self._channel, self._keys)

    def _ask(self, **request: Any) -> Any:
        if self._keys is not None:
            answer = self._keys.answer(request)
        else:
            answer = self._ask_server(json.dumps(request).encode())
        if "error" in answer:
            raise errors.Unavailable(f"the store refused {request.get('do')}: {answer['error']}")
        return answer.get("value")

    def _ask_server(self, data: bytes) -> Dict[str, Any]:
        tag = _FIRST_ANSWER_TAG + 2 * (next(self._calls) % _TAGS)
        header = len(data).to_bytes(8, "little") + tag.to_bytes(8, "little")
        memory, handle = self._channel.receive(0, tag, _HEADER)
        with self._asking:  # a header and its body belong together
            self._channel.send(0, _REQUEST_TAG, header.ljust(_HEADER, b"\0"))
            self._channel.send(0, _BODY_TAG, data)
        handle.wait(60)
        count = int.from_bytes(bytes(memory)[:8], "little")
        if count > _MOST_BYTES:
            raise errors.Internal("the store's answer makes no sense")
        memory, handle = self._channel.receive(0, tag + 1, count)
        handle.wait(60)
        return json.loads(bytes(memory)[:count])

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

    def wait(self, keys: List[str], timeout: Optional[timedelta] = None) -> None:
        keys = [_text(key) for key in keys]
        limit = self._limit if timeout is None else timeout.total_seconds()
        end = time.monotonic() + limit
        pause = _FIRST_PAUSE
        while True:
            keys = self._ask(do="check", keys=keys)
            if not keys:
                return
            pause = self._pause(pause, end, keys)

    def _pause(self, seconds: float, end: float, keys: List[str]) -> float:
        if time.monotonic() >= end:
            raise errors.Timeout(
                "the store has not got " + ", ".join(repr(key) for key in keys[:3])
                + ": another rank should have set it; is it still there?")
        time.sleep(seconds)
        return min(2 * seconds, _LONGEST_PAUSE)

    def add(self, key: str, value: int) -> int:
        return self._ask(do="add", key=_text(key), value=int(value))

    def check(self, keys: List[str]) -> bool:
        return not self._ask(do="check", keys=[_text(key) for key in keys])

    def compare_set(self, key: str, expected_value: Any, desired_value: Any) -> bytes:
        return bytes.fromhex(self._ask(do="compare", key=_text(key),
                                       expected=_bytes(expected_value).hex(),
                                       value=_bytes(desired_value).hex()))

    def delete_key(self, key: str) -> bool:
        return self._ask(do="delete", key=_text(key))

    def num_keys(self) -> int:
        return self._ask(do="count")

    def list_keys(self) -> List[str]:
        return self._ask(do="list")

    def multi_get(self, keys: List[str]) -> List[bytes]:
        return [self.get(key) for key in keys]

    def multi_set(self, keys: List[str], values: List[Any]) -> None:
        for key, value in zip(keys, values):
            self.set(key, value)

    def has_extended_api(self) -> bool:
        return True

    def clone(self) -> "Store":
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


_store: Optional[Store] = None
_generation = -1


def store() -> Store:
    """This job's. The first call is collective: it makes a process set."""
    global _store, _generation
    if _store is None or _generation != core.generation() or _store._pid != os.getpid():
        _store = Store()
        _generation = core.generation()
    return _store
