"""The attacks, one round each. A round gets a random generator and returns a Report."""

from __future__ import annotations

import random
import re
import signal
import time
from pathlib import Path

from job import Job, Report, send

LIMIT = 40.0  # seconds for whatever must end by itself
ENDED = re.compile(r"\[(\d+)\]<stdout>:(?:lost|done)")


def layout(dice: random.Random, ranks: int) -> tuple[list[str], list[str]]:
    """Options of the launcher and parameters of the ranks: through shared memory or, within one machine, the link."""
    options = ["-np", str(ranks), "--grace", "3"]
    if dice.random() < 0.3:
        options += ["--no-hierarchy", "--wire-security", dice.choice(["encrypt", "integrity", "handshake"])]
    case = [str(dice.choice([4, 1024, 65536, 1 << 20])), dice.choice(["ordinary", "shared"]), dice.choice(["named", "ordered"])]
    return options, case


def ended_early(job: Job) -> Report:
    report = job.finish(LIMIT)
    report.bad.insert(0, f"the ranks did not start\n{job.text()[-2000:]}")
    return report


def kill(dice: random.Random, tree: Path) -> Report:
    """kill -9 while ranks compute: a rank, two, the launcher, the guardian and a rank, the launcher of a stopped rank."""
    ranks = dice.randint(2, 5)
    options, case = layout(dice, ranks)
    who = dice.choice(["rank", "rank", "ranks", "launcher", "guardian", "launcher of stopped"])
    job = Job(tree, options, ["60", *case, "child"])
    if not job.wait_for("ready", ranks, LIMIT):
        return ended_early(job)
    time.sleep(dice.random() * 0.2)
    pids = job.rank_pids()
    victims = dice.sample(sorted(pids), 2 if who == "ranks" and ranks > 2 else 1)
    struck = time.monotonic()
    if who.startswith("launcher"):
        if who != "launcher":
            send(pids[victims[0]], signal.SIGSTOP)
        send(job.launcher(), signal.SIGKILL)
        return job.finish(LIMIT)
    if who == "guardian":
        for process in job.processes():
            if process.is_guardian:
                send(process.pid, signal.SIGKILL)
    for victim in victims:
        send(pids[victim], signal.SIGKILL)
    report = job.finish(LIMIT, set(victims), struck)
    if not report.bad and job.process.returncode != 128 + signal.SIGKILL:
        report.bad.append(f"exit code {job.process.returncode}\n{job.text()[-2000:]}")
    return report


def early(dice: random.Random, tree: Path) -> Report:
    """kill -9 of the launcher while it starts its ranks."""
    job = Job(tree, ["-np", str(dice.randint(1, 4))], ["60", "1024", "ordinary", "named", "child"])
    time.sleep(dice.random() * 0.05)
    send(job.process.pid, signal.SIGKILL)
    return job.finish(LIMIT)


def stop(dice: random.Random, tree: Path) -> Report:
    """Ranks that are stopped and continued at random: right sums, and the job goes on."""
    ranks = dice.randint(2, 4)
    options, case = layout(dice, ranks)
    job = Job(tree, options, ["2", *case])
    if not job.wait_for("ready", ranks, LIMIT):
        return ended_early(job)
    pids = list(job.rank_pids().values())
    end = time.monotonic() + 2.5
    while time.monotonic() < end and job.process.poll() is None:
        pid = dice.choice(pids)
        send(pid, signal.SIGSTOP)
        time.sleep(dice.random() ** 3 * 0.4)
        send(pid, signal.SIGCONT)
        time.sleep(dice.random() * 0.01)
    report = job.finish(LIMIT)
    if not report.bad and job.process.returncode != 0:
        report.bad.append(f"exit code {job.process.returncode}\n{job.text()[-2000:]}")
    return report


def scribble(dice: random.Random, tree: Path) -> Report:
    """A rank that overwrites shared memory, then ends: every other rank ends by itself, by an error or by its clock."""
    ranks = dice.randint(2, 4)
    hostile = dice.randrange(ranks)
    case = ["3", str(dice.choice([4, 1024, 65536, 1 << 20])), dice.choice(["ordinary", "shared"]), "named"]
    job = Job(tree, ["-np", str(ranks), "--grace", "8"], [*case, "scribble", str(dice.getrandbits(60)), str(hostile)])
    report = job.finish(LIMIT)
    text = job.text()
    # The hostile rank may have destroyed what it needs itself.
    if len(report.bad) == 3 and report.bad[0].startswith("a crash") and f"first cause: rank {hostile} on" in text:
        report.bad.clear()
    ended = {int(rank) for rank in ENDED.findall(text)}
    if waited := sorted(set(range(ranks)) - {hostile} - ended):
        report.bad.append(f"ranks {waited} were ended by the launcher; rank {hostile} was the hostile one\n{text[-3000:]}")
    return report


def hosts(dice: random.Random, tree: Path, prefix: list[str]) -> Report:
    """kill -9 in a job of two hosts: a rank, an agent, ssh, a remote guardian and a rank, the launcher; a stopped agent."""
    here, there = dice.choice([(1, 1), (2, 1), (1, 2), (2, 2)])
    ranks = here + there
    security = dice.choice(["encrypt", "integrity", "handshake"])
    options = ["-H", f"h0:{here},h1:{there}", "--grace", "3", "--wire-security", security]
    case = [str(dice.choice([4, 65536, 1 << 20])), dice.choice(["ordinary", "shared"]), dice.choice(["named", "ordered"])]
    who = dice.choice(["rank", "rank", "agent", "ssh", "guardian", "launcher", "launcher", "stopped agent"])
    job = Job(tree, options, ["60", *case], prefix)
    if not job.wait_for("ready", ranks, LIMIT):
        return ended_early(job)
    time.sleep(dice.random() * 0.2)
    processes = job.processes()
    pids = {p.rank: p.pid for p in processes if p.rank is not None}
    remote = set(range(here, ranks))
    struck = time.monotonic()
    if who in ("rank", "guardian"):
        victim = dice.choice(sorted(remote if who == "guardian" else pids))
        if who == "guardian":
            namespace = next(p.namespace for p in processes if p.rank == victim)
            for process in processes:
                if process.is_guardian and process.namespace == namespace:
                    send(process.pid, signal.SIGKILL)
        send(pids[victim], signal.SIGKILL)
        return job.finish(LIMIT, {victim}, struck)
    if who == "launcher":
        send(job.launcher(), signal.SIGKILL)
        return job.finish(LIMIT)
    targets = [p.pid for p in processes if (p.name == "ssh" if who == "ssh" else p.is_farandole("agent"))]
    for pid in targets:
        send(pid, signal.SIGSTOP if who == "stopped agent" else signal.SIGKILL)
    if who == "stopped agent":
        job.ends_within(LIMIT)
        for pid in targets:
            send(pid, signal.SIGCONT)  # it finds out that its launcher is gone
    report = job.finish(LIMIT, remote, struck)
    if not targets:
        report.bad.insert(0, f"found no {who} to attack")
    return report
