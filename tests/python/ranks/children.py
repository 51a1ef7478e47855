"""Processes that ranks start: by fork, by fork of a fork, by spawn and forkserver, and programs."""

from __future__ import annotations

import multiprocessing
import subprocess
import sys

import farandole.core as core


def start(method, target, *args):
    """What target(queue, *args) puts into its queue, in a process started that way."""
    context = multiprocessing.get_context(method)
    queue = context.Queue()
    process = context.Process(target=target, args=(queue, *args))
    process.start()
    try:
        answer = queue.get(timeout=20)
        process.join(20)
        assert process.exitcode == 0, process.exitcode
        return answer
    finally:
        process.kill()


def answer(queue):
    queue.put("here")


def worker_with_process(queue):
    """As a data-loading worker does: its pipes get the numbers that the rank's descriptors had."""
    queue.put(start("fork", answer))


def worker_with_program(queue):
    done = subprocess.run(
        ["cat"], input=b"hello", stdout=subprocess.PIPE, preexec_fn=lambda: None, timeout=20
    )
    queue.put((done.returncode, done.stdout))


def case_process_of_a_worker():
    assert start("fork", worker_with_process) == "here"


def case_program_of_a_worker():
    assert start("fork", worker_with_program) == (0, b"hello")


def case_program_with_preexec():
    done = subprocess.run(
        [sys.executable, "-c", "print('fine')"],
        stdout=subprocess.PIPE,
        preexec_fn=lambda: None,
        timeout=20,
    )
    assert done.stdout == b"fine\n"


def case_spawn():
    assert start("spawn", answer) == "here"


def case_forkserver():
    assert start("forkserver", answer) == "here"


def case_ranks_go_on():
    core.barrier()


# Spawned children run this file too.
if __name__ == "__main__":
    import cases

    core.init()
    cases.run(globals())
