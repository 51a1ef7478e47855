"""Ranks that are killed while DDP's buckets are exchanged leave nothing in /dev/shm.

PyTorch gives a bucket a name there between two system calls. Two of three kills are aimed at that
moment, the others come at any time. KILL_ROUNDS=N makes it N kills (default: what 10 s allow, but
at least three), KILL_SEED=N another choice of moments.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import random
import re
import select
import signal
import struct
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import conftest

SHM = Path("/dev/shm")
SECONDS = 10
LEAST_ROUNDS = 3
PATIENCE = 60
IN_CREATE = 0x100  # of <sys/inotify.h>


@contextlib.contextmanager
def ahead_of(pid: int) -> Iterator[None]:
    """Has this thread and all of that process's on one processor, where this one goes first."""
    cpu = min(os.sched_getaffinity(0))
    before = os.sched_getaffinity(0)
    for thread in os.listdir(f"/proc/{pid}/task"):
        os.sched_setaffinity(int(thread), {cpu})
    os.sched_setaffinity(0, {cpu})
    with contextlib.suppress(PermissionError):  # then the ranks are of the idle class: see below
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    try:
        yield
    finally:
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
        os.sched_setaffinity(0, before)


def may_go_first() -> bool:
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    except PermissionError:
        return False
    os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    return True


@contextlib.contextmanager
def creations() -> Iterator[Iterator[str]]:
    """Names that appear in /dev/shm, as they do."""
    libc = ctypes.CDLL(None, use_errno=True)
    file = libc.inotify_init1(os.O_CLOEXEC)
    assert file >= 0 and libc.inotify_add_watch(file, bytes(SHM), IN_CREATE) >= 0

    def names() -> Iterator[str]:
        poll = select.poll()
        poll.register(file, select.POLLIN)
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            if not poll.poll(1000):
                continue
            data, at = os.read(file, 65536), 0
            while at < len(data):
                (length,) = struct.unpack_from("12xI", data, at)
                yield os.fsdecode(data[at + 16 : at + 16 + length].rstrip(b"\0"))
                at += 16 + length

    try:
        yield names()
    finally:
        os.close(file)


def kill_at_the_moment(victim: int, which: int) -> bool:
    """At its which-th name from now; whether the name was still there then."""
    with creations() as names, ahead_of(victim):
        for name in names:
            if not name.startswith(f"torch_{victim}_"):
                continue
            which -= 1
            if which <= 0:
                os.kill(victim, signal.SIGKILL)
                return (SHM / name).exists()
    raise AssertionError(f"process {victim} has exchanged no bucket within {PATIENCE} s")


class Job:
    """Two ranks that exchange buckets until one of them is killed."""

    def __init__(self) -> None:
        idle = [] if may_go_first() else ["IDLE"]
        self.process = subprocess.Popen(
            conftest.command(2, "c10d_exchange.py", *idle),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            text=True,
            start_new_session=True,
        )
        self.output = ""
        self.pids: dict[int, int] = {}  # by rank

    def __enter__(self) -> Job:
        assert self.process.stdout is not None
        while len(self.pids) < 2:
            line = self.process.stdout.readline()
            assert line, f"the job has ended early:\n{self.output}"
            self.output += line
            if found := re.search(r"rank (\d) is process (\d+)", line):
                self.pids[int(found[1])] = int(found[2])
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        if self.process.stdout is not None:
            self.process.stdout.close()

    def finish(self) -> int:
        rest, _ = self.process.communicate(timeout=PATIENCE)
        self.output += rest
        return self.process.returncode


def left_by(pids: list[int], before: list[str]) -> list[str]:
    ours = re.compile(r".*farandole|torch_({})_".format("|".join(map(str, pids))))
    return [name for name in os.listdir(SHM) if name not in before and ours.match(name)]


def test_nothing_is_left_of_killed_ranks():
    seed = int(os.environ.get("KILL_SEED", "1"))
    rounds = int(os.environ.get("KILL_ROUNDS", "0"))
    end = time.monotonic() + SECONDS
    moments = random.Random(seed)
    done = aimed = hits = 0
    while done < (rounds or LEAST_ROUNDS) or (not rounds and time.monotonic() < end):
        what = f"KILL_SEED={seed}, round {done}"
        before = os.listdir(SHM)
        with Job() as job:
            rank = moments.randrange(2)
            if done % 3 < 2:
                aimed += 1
                hits += kill_at_the_moment(job.pids[rank], moments.randint(1, 4))
            else:
                time.sleep(moments.uniform(0, 0.5))
                os.kill(job.pids[rank], signal.SIGKILL)
            code = job.finish()
        assert code == 128 + signal.SIGKILL, f"{what}: {job.output}"
        assert f"first cause: rank {rank}" in job.output, f"{what}: {job.output}"
        left = left_by(list(job.pids.values()), before)
        assert not left, f"{what}: {left}"
        done += 1
    print(f"{done} ranks killed, {hits} of them while a bucket had its name")
    # Otherwise nothing has been shown.
    assert hits * 2 >= aimed, f"KILL_SEED={seed}: {hits} of {aimed} kills came at the moment"
