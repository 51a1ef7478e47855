"""A rank of farandole.run(): takes the function from the first rank's input and calls it."""

from __future__ import annotations

import base64
import ctypes
import importlib.util
import os
import pickle
import sys
import types
from typing import Any

from . import core

_PIECE = 24 << 10


def _payload() -> bytes:
    """What the first rank reads, on all ranks."""
    data = sys.stdin.buffer.read() if core.rank() == 0 else b""
    count = (ctypes.c_int64 * 1)(len(data))
    address = ctypes.addressof(count)
    core.broadcast(address, address, 1, core.DType.INT64, 0, keep=count).wait()
    memory = (ctypes.c_char * max(1, count[0])).from_buffer_copy(data or bytes(max(1, count[0])))
    address = ctypes.addressof(memory)
    core.broadcast(address, address, len(memory), core.DType.UINT8, 0, keep=memory).wait()
    return bytes(memory)[: count[0]]


def _load_script(path: str, source: str) -> None:
    """The caller's script as __main__, without its part under if __name__ == '__main__'."""
    module = types.ModuleType("__farandole_main__")
    module.__file__ = path
    module.__spec__ = importlib.util.spec_from_loader("__farandole_main__", None)
    sys.modules["__farandole_main__"] = sys.modules["__main__"] = module
    exec(compile(source, path, "exec"), module.__dict__)  # it is the caller's own


def _give_back(value: Any) -> None:
    mark = os.environ["FARANDOLE_VALUE_MARK"] + str(core_rank) + ":"
    try:
        text = base64.b64encode(pickle.dumps(value)).decode()
    except Exception as error:
        raise TypeError(
            f"rank {core_rank}: the function's value, of {type(value).__name__}, cannot be "
            f"sent back: {error}"
        ) from error
    sys.stdout.flush()
    for at in range(0, len(text), _PIECE):
        print(mark + text[at : at + _PIECE])
    print(mark, flush=True)


def main() -> None:
    global core_rank
    core.init()
    core_rank = core.rank()  # the function may shut Farandole down
    message = pickle.loads(_payload())
    for each in message["path"]:
        if each not in sys.path:
            sys.path.append(each)
    if message["script"] is not None:
        _load_script(*message["script"])
    fn, args, kwargs = pickle.loads(message["call"])
    _give_back(fn(*args, **kwargs))


core_rank = 0

if __name__ == "__main__":
    main()
