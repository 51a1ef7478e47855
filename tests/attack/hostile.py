"""Hostile bytes at everything that a running job listens on. Only addresses of this machine's loopback are connected to."""

from __future__ import annotations

import os
import random
import socket
import time
from pathlib import Path

from job import Job, Report, read
from rounds import LIMIT, ended_early

ANOTHER_USER = 12_001
HANDSHAKE_RECORD = bytes([0x16, 3, 1])


def inodes(pid: int) -> set[str]:
    found = set()
    for name in os.listdir(f"/proc/{pid}/fd"):
        try:
            target = os.readlink(f"/proc/{pid}/fd/{name}")
        except OSError:
            continue
        if target.startswith("socket:["):
            found.add(target[8:-1])
    return found


def doors(job: Job) -> tuple[list[int], list[str]]:
    """TCP ports and abstract sockets on which processes of the job listen."""
    mine: set[str] = set()
    for process in job.processes():
        try:
            mine |= inodes(process.pid)
        except OSError:
            continue
    ports, names = set(), set()
    for table in ("tcp", "tcp6"):
        for line in read(f"/proc/net/{table}").decode().splitlines()[1:]:
            words = line.split()
            if words[3] == "0A" and words[9] in mine:
                ports.add(int(words[1].rpartition(":")[2], 16))
    for line in read("/proc/net/unix").decode(errors="replace").splitlines()[1:]:
        words = line.split()
        if len(words) > 7 and words[6] in mine and words[3] == "00010000" and words[7].startswith("@"):
            names.add("\0" + words[7][1:])
    return sorted(ports), sorted(names)


def client_hello(dice: random.Random) -> bytes:
    """The outline of a TLS 1.3 greeting with a pre-shared key whose proof is wrong."""
    identity = f"job-{dice.getrandbits(64):x}/1/0".encode()
    identities = len(identity).to_bytes(2, "big") + identity + bytes(4)
    binder = bytes([32]) + dice.randbytes(32)
    psk = len(identities).to_bytes(2, "big") + identities + len(binder).to_bytes(2, "big") + binder
    extensions = b"".join(
        kind.to_bytes(2, "big") + len(body).to_bytes(2, "big") + body
        for kind, body in [(43, bytes([2, 3, 4])), (45, bytes([1, 1])), (10, bytes([0, 2, 0, 29])),
                           (51, bytes([0, 36, 0, 29, 0, 32]) + dice.randbytes(32)), (41, psk)]
    )
    body = bytes([3, 3]) + dice.randbytes(32) + bytes([0, 0, 2, 0x13, 0x01, 1, 0])
    body += len(extensions).to_bytes(2, "big") + extensions
    message = bytes([1]) + len(body).to_bytes(3, "big") + body
    return HANDSHAKE_RECORD + len(message).to_bytes(2, "big") + message


def garbage(dice: random.Random) -> bytes:
    hello = client_hello(dice)
    return dice.choice([
        b"", bytes(dice.choice([1, 64, 4096])), dice.randbytes(dice.randint(1, 2000)), b"GET / HTTP/1.0\r\n\r\n",
        HANDSHAKE_RECORD + b"\xff\xff" + dice.randbytes(500), hello, hello[:dice.randint(1, len(hello))],
        bytes([dice.randrange(256)]) * 1000, dice.randbytes(1 << 20) if dice.random() < 0.02 else b"FARANDOLE",
    ])


def flood(addresses: list[tuple[int, object]], seed: int, seconds: float, uid: int) -> int:
    """In a process of its own, as another user if uid is not 0. Returns its pid; it exits with thousands of connections."""
    pid = os.fork()
    if pid:
        return pid
    count = 0
    try:
        if uid:
            os.setgroups([])
            os.setgid(uid)
            os.setuid(uid)
        dice = random.Random(seed)
        held: list[socket.socket] = []
        end = time.monotonic() + seconds
        while time.monotonic() < end and count < 200_000:
            family, where = dice.choice(addresses)
            door = socket.socket(family, socket.SOCK_STREAM)
            door.settimeout(0.2)
            try:
                door.connect(where)
                door.sendall(garbage(dice))
            except OSError:
                pass
            count += 1
            if dice.random() < 0.05:
                held.append(door)  # half open, until it is one of too many
                if len(held) > 64:
                    held.pop(0).close()
            else:
                door.close()
    finally:
        os._exit(min(count // 1000, 255))


def hostile(dice: random.Random, tree: Path) -> tuple[Report, int]:
    """A job between "machines" while every door of it is flooded, by this user and by another one."""
    security = dice.choice(["encrypt", "integrity", "handshake"])
    job = Job(tree, ["-np", "2", "--no-hierarchy", "--wire-security", security], ["4", "65536", "ordinary", "named"])
    if not job.wait_for("ready", 2, LIMIT):
        return ended_early(job), 0
    ports, names = doors(job)
    addresses: list[tuple[int, object]] = [(socket.AF_INET, ("127.0.0.1", port)) for port in ports]
    addresses += [(socket.AF_UNIX, name) for name in names]
    if not ports or not names:
        report = job.finish(LIMIT)
        report.bad.append(f"found no doors to attack: ports {ports}, sockets {names}")
        return report, 0
    before = {rank: len(os.listdir(f"/proc/{pid}/fd")) for rank, pid in job.rank_pids().items()}
    attackers = [flood(addresses, dice.getrandbits(32), 2.5, uid) for uid in (0, ANOTHER_USER)]
    count, held = 0, 0
    for pid in attackers:
        count += os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) * 1000
    for rank, pid in job.rank_pids().items():
        try:
            held = max(held, len(os.listdir(f"/proc/{pid}/fd")) - before.get(rank, 0))
        except OSError:
            continue
    report = job.finish(LIMIT)
    if held > 256:
        report.bad.append(f"a rank holds {held} descriptors more than before")
    if not report.bad and job.process.returncode != 0:
        report.bad.append(f"exit code {job.process.returncode}\n{job.text()[-2000:]}")
    if count == 0:
        report.bad.append("the attackers did not get to it")
    return report, count
