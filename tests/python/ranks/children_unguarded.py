"""The usual mistake: init at the top level of a script whose children run that again."""

from __future__ import annotations

import ctypes
import multiprocessing
import sys
from typing import Any

import farandole.core as core

core.init()


def answer(queue):
    queue.put("a child that is no rank got this far")


if __name__ == "__main__":
    context: Any = multiprocessing.get_context(sys.argv[1])
    queue = context.Queue()
    child = context.Process(target=answer, args=(queue,))
    child.start()
    data = (ctypes.c_float * 4)(1, 1, 1, 1)
    place = ctypes.addressof(data)
    # Through the whole life of the child, and after it.
    going = True
    while going:
        going = child.exitcode is None
        flag = (ctypes.c_float * 1)(going)
        core.allreduce(place, place, 4, core.DType.FLOAT32, name="work", keep=data).wait()
        where = ctypes.addressof(flag)
        core.allreduce(where, where, 1, core.DType.FLOAT32, name="going", keep=flag).wait()
        going = flag[0] > 0
    assert child.exitcode != 0
    print("trained", flush=True)
