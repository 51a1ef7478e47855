"""What the tests of the Python packages share: starting ranks with `farandole run`."""

from __future__ import annotations

import importlib.util
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Callable

import pytest

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
# A build tree or an installed one: bin/farandole, lib/libfarandole.so.
TREE = Path(os.environ.get("FARANDOLE_TREE", ROOT / "build"))

# Code under test that runs in this very process; ranks get it from `farandole run`.
sys.path.insert(0, str(ROOT / "python"))
os.environ.setdefault("FARANDOLE_LIBRARY", str(TREE / "lib" / "libfarandole.so"))

# A shell that starts tests in the background has SIGINT ignored, which ranks would inherit: some of
# them are interrupted.
signal.signal(signal.SIGINT, signal.default_int_handler)


def version_of_torch() -> tuple[int, int]:
    """Of this interpreter's PyTorch, which is not loaded for that: it takes seconds."""
    found = importlib.util.find_spec("torch")
    assert found and found.origin, "PyTorch is not installed"
    text = Path(found.origin).with_name("version.py").read_text()
    match = re.search(r"__version__ = .(\d+)\.(\d+)", text)
    assert match, text
    return int(match[1]), int(match[2])


class Finished:
    """A job that has ended: exit code, and what it printed (both streams, in order)."""

    def __init__(self, code: int, output: str) -> None:
        self.code = code
        self.output = output

    def expect_success(self) -> Finished:
        assert self.code == 0, f"exit code {self.code}; the job printed:\n{self.output}"
        return self

    def expect_failure(self, *texts: str) -> Finished:
        assert self.code != 0, f"the job should have failed; it printed:\n{self.output}"
        for text in texts:
            assert text in self.output, f"{text!r} is missing in:\n{self.output}"
        return self

    def expect_told(self, ranks: set[int], culprit: int) -> Finished:
        """That exactly these ranks have printed what they were told, and that it was about him."""
        told = re.findall(r"rank (\d+) was told: (.*)", self.output)
        assert {int(rank) for rank, _ in told} == ranks, f"told were {told} in:\n{self.output}"
        for rank, text in told:
            assert f"rank {culprit}" in text, f"rank {rank} was told: {text}"
        return self


def command(np: int, script: str, *args: str, options: tuple = ()) -> list[str]:
    path = HERE / "ranks" / script
    return [
        str(TREE / "bin" / "farandole"),
        "run",
        "-np",
        str(np),
        *options,
        sys.executable,
        str(path),
        *map(str, args),
    ]


def run_command(
    words: list[str],
    env: dict[str, str] | None = None,
    timeout: float = 120,
    cwd: Path | None = None,
) -> Finished:
    """Runs a command to its end, in a process group of its own that never outlives the test."""
    environment = dict(os.environ)
    environment.pop("PYTHONPATH", None)
    environment.pop("FARANDOLE_LIBRARY", None)
    environment.setdefault("OMP_NUM_THREADS", "1")
    environment.update(env or {})
    process = subprocess.Popen(
        words,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        env=environment,
        text=True,
        start_new_session=True,
        cwd=cwd,
    )
    try:
        output, _ = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGTERM)  # the launcher ends its ranks
        try:
            output, _ = process.communicate(timeout=15)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            output, _ = process.communicate()
        pytest.fail(f"{' '.join(words)}\ndid not end within {timeout} s; it printed:\n{output}")
    return Finished(process.returncode, output)


@pytest.fixture
def launch() -> Callable[..., Finished]:
    """launch(np, script, *args, env=…, timeout=…, options=…): `farandole run` of ranks/script."""

    def start(
        np: int,
        script: str,
        *args: str,
        env: dict[str, str] | None = None,
        timeout: float = 120,
        options: tuple = (),
    ) -> Finished:
        return run_command(command(np, script, *args, options=options), env, timeout)

    return start
