#!/usr/bin/env python3
"""Attacks on running jobs: kills, stops, hostile bytes, overwritten shared memory. See README.md beside this file.

Every round has a seed of its own, which is printed if the round went wrong: --only PHASE --seed N --rounds 1 repeats it.
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Callable, Iterator

import rounds
from hostile import hostile
from job import Report

REPOSITORY = Path(__file__).resolve().parents[2]
# A phase's part of the time.
SHARES = {"kill": 5, "early": 1, "stop": 3, "hostile": 3, "scribble": 3, "hosts": 5}


@dataclass
class Tally:
    rounds: int = 0
    bad: int = 0
    connections: int = 0
    named_after: list[float] = field(default_factory=list)

    def line(self, phase: str) -> str:
        text = f"{phase:<9} {self.rounds:4d} rounds, {self.bad} bad"
        if self.named_after:
            text += f"; named after {max(self.named_after) * 1000:.0f} ms at most, " \
                    f"{statistics.mean(self.named_after) * 1000:.0f} in the mean ({len(self.named_after)} reports)"
        if self.connections:
            text += f"; at least {self.connections} hostile connections"
        return text


@contextmanager
def laboratory() -> Iterator[list[str]]:
    """Two hosts; yields the words with which a command runs on the first."""
    tool = [str(REPOSITORY / "tools/lab"), "--name", f"attack-{os.getpid()}"]
    subprocess.run([*tool, "up", "--hosts", "2"], check=True, stdout=subprocess.DEVNULL)
    try:
        yield [*tool, "exec", "h0", "--"]
    finally:
        subprocess.run([*tool, "down"], check=False, stdout=subprocess.DEVNULL)


def repeat(phase: str, seed: int, seconds: float, most: int, one: Callable[[random.Random, Tally], Report]) -> Tally:
    tally = Tally()
    end = time.monotonic() + seconds
    while tally.rounds == 0 or (time.monotonic() < end and tally.rounds < most):
        its_seed = seed + tally.rounds
        report = one(random.Random(f"{phase} {its_seed}"), tally)
        tally.rounds += 1
        tally.named_after += report.named_after
        if report.bad:
            tally.bad += 1
            print(f"{phase}, seed {its_seed}: " + "\n  ".join(report.bad), flush=True)
    print(tally.line(phase), flush=True)
    return tally


def attack(phase: str, tree: Path, seed: int, seconds: float, most: int) -> Tally:
    def one_hostile(dice: random.Random, tally: Tally) -> Report:
        report, connections = hostile(dice, tree)
        tally.connections += connections
        return report

    if phase == "hosts":
        with laboratory() as prefix:
            return repeat(phase, seed, seconds, most, lambda dice, _: rounds.hosts(dice, tree, prefix))
    if phase == "hostile":
        return repeat(phase, seed, seconds, most, one_hostile)
    plain = {"kill": rounds.kill, "early": rounds.early, "stop": rounds.stop, "scribble": rounds.scribble}[phase]
    return repeat(phase, seed, seconds, most, lambda dice, _: plain(dice, tree))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tree", type=Path, default=REPOSITORY / "build", help="a build directory (default: build)")
    parser.add_argument("--seconds", type=float, default=300, help="for all phases together (default: 300)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=1_000_000, help="of each phase, at most")
    parser.add_argument("--only", default=",".join(SHARES), help="phases, with commas (default: all)")
    arguments = parser.parse_args()
    phases = arguments.only.split(",")
    if unknown := [phase for phase in phases if phase not in SHARES]:
        parser.error(f"there is no phase '{unknown[0]}'; there are: {', '.join(SHARES)}")
    if os.geteuid() != 0:
        parser.error("another user and laboratory hosts are made here: run it as root")
    if not (arguments.tree / "bin/core_rank").exists():
        parser.error(f"{arguments.tree}/bin/core_rank is missing: run make build")
    before = set(os.listdir("/dev/shm"))
    whole = sum(SHARES[phase] for phase in phases)
    bad = 0
    for phase in phases:
        share = arguments.seconds * SHARES[phase] / whole
        bad += attack(phase, arguments.tree.resolve(), arguments.seed, share, arguments.rounds).bad
    if left := sorted(name for name in set(os.listdir("/dev/shm")) - before if "farandole" in name):
        print(f"left in /dev/shm: {', '.join(left)}")
        bad += 1
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
