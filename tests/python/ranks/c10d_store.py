"""The store while one of its clients, or the rank that keeps it, stands still. Three ranks."""

from __future__ import annotations

import os
import signal
import threading
from datetime import timedelta
from unittest import mock

import torch.distributed as dist

from farandole import errors
from farandole.c10d import store as stores

dist.init_process_group("farandole")
RANK = dist.get_rank()
STORE = stores.store()
STORE.set(f"process {RANK}", str(os.getpid()))


def wait_until_stopped(process):
    while True:
        with open(f"/proc/{process}/stat") as file:
            if file.read().rsplit(")", 1)[1].split()[0] == "T":
                return


def a_client_stands_still():
    if RANK == 1:
        send = STORE._channel.send

        def send_and_stand_still(peer, tag, *args):
            sent = send(peer, tag, *args)
            if tag == stores.BODY_TAG:
                os.kill(os.getpid(), signal.SIGSTOP)
            return sent

        with mock.patch.object(STORE._channel, "send", send_and_stand_still):
            STORE.set("late", "here")  # from a stop between request and answer
    if RANK == 2:
        process = int(STORE.get("process 1"))
        wait_until_stopped(process)
        try:
            # The others' requests are answered all the time.
            STORE.set_timeout(timedelta(seconds=20))
            for i in range(100):
                STORE.set(f"key {i}", str(i))
                assert STORE.get(f"key {i}") == str(i).encode()
        finally:
            os.kill(process, signal.SIGCONT)
    assert STORE.get("late") == b"here"
    dist.barrier()


def the_keeper_stands_still():
    if RANK == 1:
        process = int(STORE.get("process 0"))
        STORE.set_timeout(timedelta(seconds=0.5))
        os.kill(process, signal.SIGSTOP)
        wait_until_stopped(process)
        try:
            for _ in range(3):
                try:
                    STORE.set("given up", "x")
                    raise AssertionError("a store that does not run has answered")
                except errors.Timeout as error:
                    assert "the store on rank 0 has not answered" in str(error), error
        finally:
            os.kill(process, signal.SIGCONT)
        # Answers that nobody waits for any more are in nobody's way.
        STORE.set_timeout(timedelta(seconds=60))
        assert STORE.add("number", 5) == 5
    dist.barrier()


def many_threads():
    def work(number):
        for i in range(10):
            STORE.add("sum", 1)
            STORE.set(f"{RANK} {number} {i}", "x" * 5000)
            assert STORE.get(f"{RANK} {number} {i}") == b"x" * 5000

    threads = [threading.Thread(target=work, args=(number,)) for number in range(40)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    dist.barrier()
    assert STORE.add("sum", 0) == 3 * 40 * 10
    dist.barrier()


for case in (a_client_stands_still, the_keeper_stands_still, many_threads):
    case()
    print("passed:", case.__name__, flush=True)
dist.destroy_process_group()
