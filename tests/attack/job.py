"""A job under attack: started, watched, and looked for afterwards."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import tempfile
import time
import uuid
from dataclasses import dataclass, field
from pathlib import Path

MARK = "FARANDOLE_ATTACK_MARK"
LOST = re.compile(r"\[(\d+)\]<stdout>:lost (\w+) at=(\d+) code=(\d+) rank=(-?\d+)")
PEER_LOST = "4"  # farandole_code
CRASH = re.compile(r"signal (?:4|6|7|8|11) \(|AddressSanitizer|runtime error:|terminate called")


@dataclass
class Process:
    pid: int
    name: str
    command: list[str]
    environment: dict[str, str]
    namespace: str  # of process ids: one for each laboratory host

    @property
    def rank(self) -> int | None:
        value = self.environment.get("FARANDOLE_RANK")
        return int(value) if value is not None and "under_attack" in self.command else None

    @property
    def is_guardian(self) -> bool:
        return self.name == "farandole-guard"

    def is_farandole(self, word: str) -> bool:
        """Whether it is `farandole WORD`; a guardian shares the command line of whom it guards."""
        return not self.is_guardian and self.command[:1] != [] and self.command[0].endswith("farandole") and word in self.command[1:2]


def read(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError:  # it has ended meanwhile
        return b""


def processes() -> list[Process]:
    """All of this machine, its laboratory hosts' too."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            namespace = os.readlink(f"/proc/{pid}/ns/pid")
        except OSError:
            continue
        name = read(f"/proc/{pid}/comm").decode(errors="replace").strip()
        words = read(f"/proc/{pid}/cmdline").decode(errors="replace").split("\0")[:-1]
        texts = read(f"/proc/{pid}/environ").decode(errors="replace").split("\0")
        found.append(Process(int(pid), name, words, dict(text.partition("=")[::2] for text in texts), namespace))
    return found


def alive(pid: int) -> bool:
    state = read(f"/proc/{pid}/stat").rpartition(b")")[2].split()
    return bool(state) and state[0] not in (b"Z", b"X")


def send(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


@dataclass
class Report:
    """How a round ended. `bad` is empty, or says what must not have happened."""

    bad: list[str] = field(default_factory=list)
    named_after: list[float] = field(default_factory=list)  # seconds from the blow to the survivors' errors


class Job:
    """`prefix` stands before the command: how to enter a laboratory host."""

    def __init__(self, tree: Path, options: list[str], case: list[str], prefix: list[str] | None = None) -> None:
        self.mark = uuid.uuid4().hex
        self.namespaces: set[str] = set()  # of the hosts where ranks were seen
        self.output = tempfile.TemporaryFile()
        command = [str(tree / "bin/farandole"), "run", "-x", MARK, *options]
        command += [str(tree / "bin/core_rank"), "under_attack", *case]
        self.command = command
        self.process = subprocess.Popen(
            (prefix or []) + command,
            stdin=subprocess.DEVNULL,
            stdout=self.output,
            stderr=subprocess.STDOUT,
            env={**os.environ, MARK: self.mark},
            start_new_session=True,
        )

    def text(self) -> str:
        size = os.fstat(self.output.fileno()).st_size
        return os.pread(self.output.fileno(), size, 0).decode(errors="replace")

    def wait_for(self, word: str, count: int, limit: float) -> bool:
        """False if the job ends, or the time is over, before `count` ranks have said the word."""
        end = time.monotonic() + limit
        while time.monotonic() < end:
            if len(re.findall(rf"<stdout>:{word}", self.text())) >= count:
                return True
            if self.process.poll() is not None:
                return False
            time.sleep(0.005)
        return False

    def processes(self) -> list[Process]:
        """What carries the job's mark, and whatever of Farandole runs on its laboratory hosts: ssh passes no mark on."""
        everything = processes()
        mine = [p for p in everything if p.environment.get(MARK) == self.mark]
        own = os.readlink("/proc/self/ns/pid")
        self.namespaces |= {p.namespace for p in mine if p.namespace != own}
        mine += [p for p in everything if p not in mine and p.namespace in self.namespaces and
                 p.command[:1] != [] and p.command[0].endswith("farandole")]
        return mine

    def rank_pids(self) -> dict[int, int]:
        return {p.rank: p.pid for p in self.processes() if p.rank is not None}

    def ends_within(self, limit: float) -> bool:
        try:
            self.process.wait(limit)
        except subprocess.TimeoutExpired:
            return False
        return True

    def launcher(self) -> int:
        return next(p.pid for p in self.processes() if p.is_farandole("run"))

    def children(self) -> list[int]:
        return [int(pid) for pid in re.findall(r"<stdout>:child (\d+)", self.text())]

    def finish(self, limit: float, killed: set[int] | None = None, struck: float | None = None) -> Report:
        """Waits for the end, and looks for whatever must not be: a hang, a crash, a wrong sum, a process that is left,
        a survivor that was not told, or was told another rank than one of those that were `killed`."""
        report = Report()
        if not self.ends_within(limit):
            report.bad.append(f"no end after {limit:.0f} s")
        text = self.text()
        if "<stdout>:wrong" in text:
            report.bad.append("a wrong sum")
        if crash := CRASH.search(text):
            report.bad.append(f"a crash: {crash.group(0)}")
        for rank, where, at, code, named in LOST.findall(text):
            if struck is not None:
                report.named_after.append(int(at) / 1e9 - struck)
            if killed is not None and code == PEER_LOST and int(named) not in killed:
                report.bad.append(f"rank {rank} ({where}) names rank {named}, not one of {sorted(killed)}")
            if killed is not None and code != PEER_LOST:
                report.bad.append(f"rank {rank} ({where}) ends with code {code}")
        report.bad += self.left_over(5)
        if report.bad:
            report.bad.append("command: " + " ".join(self.command))
            report.bad.append("output:\n" + text[-3000:])
        return report

    def left_over(self, limit: float) -> list[str]:
        """What is still there after so many seconds; it is ended then."""
        children = self.children()
        end = time.monotonic() + limit
        while True:
            left = [p for p in self.processes() if alive(p.pid)]
            orphans = [pid for pid in children if alive(pid) and b"sleep" in read(f"/proc/{pid}/cmdline")]
            if not left and not orphans:
                return []
            if time.monotonic() > end:
                break
            time.sleep(0.02)
        for pid in [p.pid for p in left] + orphans:
            send(pid, signal.SIGKILL)
        return [f"left behind: {p.pid} {' '.join(p.command)}" for p in left] + [
            f"left behind, without the mark: {pid}" for pid in orphans
        ]
