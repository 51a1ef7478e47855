"""What the cases are written with: hosts, containers, jobs, expectations."""

from __future__ import annotations

import re
import resource
import subprocess
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Iterator

HERE = Path(__file__).resolve().parent
REPOSITORY = HERE.parents[1]
PORT = 12345
LONGEST = 900  # seconds for the longest command, on a busy machine


class Failed(Exception):
    """An expectation that was not met; the text says which."""


@dataclass
class Outcome:
    code: int
    out: str
    err: str
    seconds: float

    @property
    def text(self) -> str:
        return self.out + self.err

    def expect(self, code: int | None, *patterns: str) -> Outcome:
        """The exit code (None: any but 0) and what must be found in the output."""
        if self.code != code if code is not None else self.code == 0:
            raise Failed(f"exit code {self.code}, expected {'a failure' if code is None else code}")
        for pattern in patterns:
            if not re.search(pattern, self.text):
                raise Failed(f"not in the output: {pattern}")
        return self

    def expect_not(self, *patterns: str) -> Outcome:
        for pattern in patterns:
            found = re.search(pattern, self.text)
            if found:
                raise Failed(f"must not be in the output: {found.group(0)!r}")
        return self

    def expect_count(self, number: int, pattern: str) -> Outcome:
        count = len(re.findall(pattern, self.text))
        if count != number:
            raise Failed(f"{count} times in the output, expected {number}: {pattern}")
        return self

    def find(self, pattern: str) -> str:
        found = re.search(pattern, self.text)
        if not found:
            raise Failed(f"not in the output: {pattern}")
        return found.group(1)


class Log:
    """Commands and what they said; the case that failed shows its part."""

    def __init__(self, path: Path) -> None:
        self._file = open(path, "w", encoding="utf-8")
        self._part: list[str] = []

    def begin(self, name: str) -> None:
        self._part = []
        self.add(f"==== {name}")

    def add(self, text: str) -> None:
        self._part.append(text)
        self._file.write(text + "\n")
        self._file.flush()

    def part(self) -> str:
        return "\n".join(self._part)


class Running:
    """A command that goes on while the case does something else."""

    def __init__(self, words: list[str], log: Log) -> None:
        self._log = log
        self._begin = time.monotonic()
        log.add("$ " + " ".join(words) + " &")
        self._process = subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        self._seen = ""

    def wait_for(self, text: str) -> None:
        """Until a line with this text."""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._seen += line
            if text in line:
                return
        raise Failed(f"the job ended without saying: {text}\n{self._seen}")

    def finish(self) -> Outcome:
        rest, _ = self._process.communicate(timeout=LONGEST)
        outcome = Outcome(self._process.returncode, self._seen + rest, "", time.monotonic() - self._begin)
        self._log.add(f"{outcome.text}(exit code {outcome.code}, {outcome.seconds:.1f} s)")
        return outcome

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()


class Host:
    """A laboratory host with a dockerd."""

    def __init__(self, name: str, address: str, folder: Path, log: Log) -> None:
        self.name = name
        self.address = address
        self._log = log
        lab = [str(REPOSITORY / "tools/lab"), "exec", "--name", "containers", "--dir", str(folder / "lab")]
        self._words = [*lab, name, "--"]

    def run(self, *words: str, folder: str = "/root", quiet: bool = False) -> Outcome:
        begin = time.monotonic()
        words_here = ["env", "-C", folder, *words]
        done = subprocess.run(
            [*self._words, *words_here], stdin=subprocess.DEVNULL, capture_output=True, text=True,
            timeout=LONGEST, check=False,
        )
        outcome = Outcome(done.returncode, done.stdout, done.stderr, time.monotonic() - begin)
        if not quiet:
            self._log.add(f"{self.name}$ {' '.join(words)}\n{outcome.text}(exit code {outcome.code}, {outcome.seconds:.1f} s)")
        return outcome

    def start(self, *words: str) -> Running:
        return Running([*self._words, "env", "-C", "/root", *words], self._log)

    def docker(self, *words: str, quiet: bool = False) -> Outcome:
        return self.run("docker", *words, quiet=quiet)

    def sshd(self, wish: str) -> None:
        """The host's own, of the laboratory: it has the port that the containers' sshd is to have."""
        words = [each if each != "exec" else "sshd" for each in self._words[:-1]]
        subprocess.run([*words, wish], check=True)

    def inspect(self, container: str, what: str) -> str:
        return self.docker("inspect", "--format", "{{" + what + "}}", container, quiet=True).expect(0).out.strip()

    def wait_for_log(self, container: str, text: str) -> None:
        for _ in range(10 * LONGEST):
            said = self.docker("logs", container, quiet=True)
            if text in said.text:
                return
            if said.code != 0 or self.inspect(container, ".State.Running") != "true":
                break
            time.sleep(0.1)
        raise Failed(f"{container} never said '{text}':\n{said.text}")

    def remove(self, container: str) -> None:
        self.docker("rm", "--force", container, quiet=True)

    def processes(self, container: str) -> list[str]:
        return self.docker("top", container, "-eo", "pid,args", quiet=True).expect(0).out.splitlines()[1:]


class Trial:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.tree = folder / "farandole"
        self.log = Log(folder / "log.txt")
        self.launcher = Host("h0", "10.77.0.10", folder, self.log)
        self.worker = Host("h1", "10.77.0.11", folder, self.log)
        self.hosts = (self.launcher, self.worker)
        # What dockerd may give to a container; the scripts of farandole init ask for no limit at all.
        limit = resource.getrlimit(resource.RLIMIT_MEMLOCK)[1]
        self.memlock = () if limit == resource.RLIM_INFINITY else (f"FARANDOLE_MEMLOCK={limit}",)

    def make_cluster(self, user: str, here: str, there: str) -> None:
        """Keys and scripts, as a new user makes them: in /root/HERE on the launcher, /root/THERE on the worker."""
        for host in self.hosts:
            host.sshd("on")
        self.launcher.run(
            str(self.tree / "bin/farandole"), "init", "--launcher", f"{self.launcher.address}:1",
            "--workers", f"worker1:2@{self.worker.address}", "--image", "trial/train", "--dir", f"/root/{here}",
            "--user", user, "--push", "--push-port", str(PORT), "--push-dir", there,
        ).expect(0, rf"worker1 \(10\.77\.0\.11\): copied to {there}")
        for host, folder in zip(self.hosts, (here, there)):
            host.sshd("off")
            host.run("cp", "-r", f"{HERE}/jobs/.", f"/root/{folder}/workload/").expect(0)

    @contextmanager
    def pair(self, image: str = "trial/train", network: tuple[str, ...] = ("--network", "host")) -> Iterator[Job]:
        """A container with an sshd on the worker's host, and one to start jobs from on the launcher's."""
        common = ["docker", "run", "--detach", "--user", "1000", "--workdir", "/tests", *network]
        home, port = "/home/dev/.ssh", f"{PORT}:{PORT}"
        try:
            self.worker.run(
                *common, "--name", "worker1",
                "--volume", f"/root/farandole/ssh_worker/worker1:{home}", "--volume", "/root/farandole/workload:/tests",
                *(("--publish", port) if "host" not in network else ()), image,
                "/usr/sbin/sshd", "-D", "-e", "-f", f"{home}/sshd_config",
            ).expect(0)
            self.launcher.run(
                *common, "--name", "launcher", "--volume", f"/root/cluster/ssh_launcher:{home}",
                "--volume", "/root/cluster/workload:/tests", "--volume", f"{self.tree}:/opt/farandole:ro",
                "trial/train", "sleep", "infinity",
            ).expect(0)
            self.worker.wait_for_log("worker1", "Server listening")
            yield Job(self)
        finally:
            self.launcher.remove("launcher")
            self.worker.remove("worker1")


@dataclass
class Job:
    trial: Trial

    def words(self, *words: str) -> list[str]:
        return ["docker", "exec", "launcher", "/opt/farandole/bin/farandole", *words]

    def farandole(self, *words: str) -> Outcome:
        return self.trial.launcher.run(*self.words(*words))

    def run(self, *words: str) -> Outcome:
        """To its end; then nothing of it may be left in the containers."""
        outcome = self.farandole("run", *words)
        self.expect_nothing_left()
        return outcome

    def start(self, *words: str) -> Running:
        return self.trial.launcher.start(*self.words("run", *words))

    def expect_nothing_left(self, worker: bool = True) -> None:
        places = [(self.trial.launcher, "launcher", "sleep infinity")]
        if worker:
            places.append((self.trial.worker, "worker1", "sshd"))
        for host, container, itself in places:
            for _ in range(100):
                left = [line for line in host.processes(container) if itself not in line]
                if not left:
                    break
                time.sleep(0.1)
            else:
                raise Failed(f"left in {container}: {left}")
