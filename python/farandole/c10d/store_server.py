"""The store's other half: the keys, kept by the first rank, and the thread that answers the others.

A request and its answer are each a fixed header and a body, sent within a process set of the
store's own, so they are authenticated like everything else in the job. No request makes the
server wait: a client that waits for a key retries. Nor does a stopped client: the server accepts
the next request of a client after its last answer was taken, and serves the others meanwhile.
"""

from __future__ import annotations

import ctypes
import json
import queue
import threading
from typing import Any, Iterator

from .. import core, errors
from ..process_sets import make_set

HEADER = 24
REQUEST_TAG = 1
# Answers have a tag per client call; headers and bodies of one rank never mix.
BODY_TAG = 2
FIRST_ANSWER_TAG = 1 << 16
TAGS = 1 << 15
MOST_BYTES = 1 << 28


class Channel:
    """Messages of bytes between the ranks of one process set."""

    def __init__(self) -> None:
        self.set = make_set(range(core.size()))

    def send(self, peer: int, tag: int, data: bytes, notify: Any = None) -> Any:
        """Does not wait. The message leaves even if the handle is dropped."""
        memory = (ctypes.c_char * max(1, len(data))).from_buffer_copy(data or b"\0")
        return core.send(
            ctypes.addressof(memory),
            len(memory),
            core.DType.UINT8,
            peer,
            tag,
            process_set=self.set,
            keep=memory,
            notify=notify,
        )

    def receive(self, peer: int, tag: int, count: int, notify: Any = None) -> tuple[Any, Any]:
        memory = (ctypes.c_char * max(1, count))()
        return memory, core.recv(
            ctypes.addressof(memory),
            len(memory),
            core.DType.UINT8,
            peer,
            tag,
            process_set=self.set,
            keep=memory,
            notify=notify,
        )


class Keys:
    """The keys and what can be done to them; every request is answered at once."""

    def __init__(self) -> None:
        self._values: dict[str, bytes] = {}
        self._lock = threading.Lock()

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        with self._lock:
            answer: dict[str, Any] = getattr(self, "_do_" + request["do"])(request)
            return answer

    def _do_set(self, request: dict[str, Any]) -> dict[str, Any]:
        self._values[request["key"]] = bytes.fromhex(request["value"])
        return {}

    def _do_append(self, request: dict[str, Any]) -> dict[str, Any]:
        key = request["key"]
        self._values[key] = self._values.get(key, b"") + bytes.fromhex(request["value"])
        return {}

    def _do_get(self, request: dict[str, Any]) -> dict[str, Any]:
        value = self._values.get(request["key"])
        return {"value": None if value is None else value.hex()}

    def _do_add(self, request: dict[str, Any]) -> dict[str, Any]:
        key = request["key"]
        number = int(self._values.get(key, b"0")) + int(request["value"])
        self._values[key] = str(number).encode()
        return {"value": number}

    def _do_compare(self, request: dict[str, Any]) -> dict[str, Any]:
        key, expected = request["key"], bytes.fromhex(request["expected"])
        desired = bytes.fromhex(request["value"])
        found = self._values.get(key)
        if found == expected or (found is None and not expected):
            found = self._values[key] = desired
        return {"value": (expected if found is None else found).hex()}

    def _do_delete(self, request: dict[str, Any]) -> dict[str, Any]:
        return {"value": self._values.pop(request["key"], None) is not None}

    def _do_count(self, _: dict[str, Any]) -> dict[str, Any]:
        return {"value": len(self._values)}

    def _do_check(self, request: dict[str, Any]) -> dict[str, Any]:
        return {"value": [key for key in request["keys"] if key not in self._values]}

    def _do_list(self, _: dict[str, Any]) -> dict[str, Any]:
        return {"value": list(self._values)}


class Server:
    """Answers the other ranks, in a thread of the first rank that never waits for a single one."""

    def __init__(self, channel: Channel, keys: Keys) -> None:
        self._channel = channel
        self._keys = keys
        self._ready: queue.SimpleQueue[int] = queue.SimpleQueue()  # ranks to go on with
        self._clients = {rank: self._serve_client(rank) for rank in range(1, core.size())}
        threading.Thread(target=self._serve, name="farandole-store", daemon=True).start()

    def _serve(self) -> None:
        for rank in self._clients:
            self._ready.put(rank)
        while self._clients:
            rank = self._ready.get()
            try:
                next(self._clients[rank])
            except (errors.Error, StopIteration):
                # The peer is lost or sent nonsense, the job is over, or this rank has left it.
                del self._clients[rank]

    def _serve_client(self, rank: int) -> Iterator[None]:
        """One request after the other. Yields where an operation goes on, which is done then."""

        def done(_: Any) -> None:
            self._ready.put(rank)

        while True:
            memory, handle = self._channel.receive(rank, REQUEST_TAG, HEADER, done)
            yield
            handle.wait()
            header = bytes(memory)
            count = int.from_bytes(header[:8], "little")
            tag = int.from_bytes(header[8:16], "little")
            if count > MOST_BYTES or not 0 <= tag - FIRST_ANSWER_TAG < 2 * TAGS:
                return
            memory, handle = self._channel.receive(rank, BODY_TAG, count, done)
            yield
            handle.wait()
            data = self._answer(bytes(memory)[:count])
            self._channel.send(rank, tag, len(data).to_bytes(8, "little").ljust(HEADER, b"\0"))
            handle = self._channel.send(rank, tag + 1, data, done)
            yield
            handle.wait()

    def _answer(self, request: bytes) -> bytes:
        try:
            answer = self._keys.answer(json.loads(request))
        except Exception as error:  # it is the asking rank's
            answer = {"error": f"{type(error).__name__}: {error}"}
        return json.dumps(answer).encode()
