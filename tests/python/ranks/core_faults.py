"""One rank fails in some way, the others wait for it: core_faults.py HOW."""

from __future__ import annotations

import atexit
import os
import signal
import sys
import threading
import time

import farandole
from farandole import errors

how = sys.argv[1]
signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job ignores it
farandole.init()
rank, size = farandole.rank(), farandole.size()
culprit = rank == size - 1
if how == "left at once" and culprit:
    sys.exit(0)
if how != "left at once":
    farandole.barrier()


def wait_for_the_culprit() -> None:
    try:
        farandole.barrier()
    except errors.RankLost as error:
        print(f"rank {rank} was told: {error}", flush=True)
        raise


def start_something() -> object:
    import array

    from farandole import core

    data = array.array("f", [1.0])
    place = data.buffer_info()[0]
    return core.allreduce(place, place, 1, core.DType.FLOAT32, name="pending", keep=data)


def inner_function_of_the_loop() -> None:
    raise KeyError("the loop broke")


if how == "exception":
    if culprit:
        # None of these may keep the rank: a thread that is no daemon, a slow function at exit.
        threading.Thread(target=time.sleep, args=(600,)).start()
        atexit.register(time.sleep, 600)
        inner_function_of_the_loop()
    wait_for_the_culprit()
elif how == "killed with a name":
    if culprit:
        # As PyTorch names shared memory before it takes the name away again.
        name = f"/dev/shm/torch_{os.getpid()}_1_0"
        with open(name, "x"):
            print(f"named {name}", flush=True)
            os.kill(os.getpid(), signal.SIGKILL)
    wait_for_the_culprit()
elif how == "killed":
    # The launcher asks the others to end as soon as it knows: these stay to be told.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if culprit:
        os.kill(os.getpid(), signal.SIGKILL)
    wait_for_the_culprit()
elif how in ("left", "left at once"):
    if culprit:
        sys.exit(0)
    wait_for_the_culprit()
elif how in ("exit code", "SystemExit", "SystemExit while pending"):
    if culprit:
        atexit.register(time.sleep, 0.3)  # who is named must not depend on how long the end takes
        if how == "exit code":
            sys.exit(7)
        if how == "SystemExit while pending":
            pending = start_something()
        raise SystemExit(7)
    wait_for_the_culprit()
elif how == "exit caught":
    # Somebody catches the SystemExit, and the rank goes on: it leaves in good order.
    try:
        sys.exit(7)
    except SystemExit:
        farandole.barrier()
    if rank == 0:
        time.sleep(0.3)
    print("leaves", flush=True)
elif how == "atexit":
    # After an exception, functions registered with atexit run, and see that the rank is still one.
    if culprit:
        atexit.register(lambda: print("at exit", farandole.rank(), flush=True))
        raise SystemError("now")
    wait_for_the_culprit()
elif how == "interrupt":
    # Ctrl-C while waiting for somebody who does not come.
    if rank == 0:
        timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        try:
            farandole.barrier()
        except KeyboardInterrupt:
            print("interrupted", flush=True)
            os._exit(9)
    time.sleep(600)
elif how == "interrupt in a thread":
    # The signal reaches the main thread while another one waits in the library.
    if rank == 0:
        threading.Thread(target=farandole.barrier, daemon=True).start()
        threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
        try:
            time.sleep(600)
        except KeyboardInterrupt:
            print("interrupted", flush=True)
            os._exit(9)
    time.sleep(600)
elif how == "init without the others":
    farandole.shutdown()
    if rank == 0:
        threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
        try:
            farandole.init()
        except KeyboardInterrupt:
            print("interrupted", flush=True)
            os._exit(9)
    time.sleep(600)
elif how == "pending at exit":
    # Leaving with operations in flight hangs nobody.
    if rank == 0:
        pending = start_something()
    print("leaves", flush=True)
else:
    raise SystemExit(f"unknown: {how}")
