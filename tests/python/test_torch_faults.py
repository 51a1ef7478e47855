"""Training with farandole.torch when something breaks, with data-loading workers alive."""

from __future__ import annotations


def test_exception_in_the_training_loop(launch):
    done = launch(2, "torch_faults.py", "exception", timeout=90)
    done.expect_failure("in training_loop", "KeyError: 'a bad sample'", "first cause: rank 1")
    assert done.code == 1
    shown = [line for line in done.output.splitlines() if "<stderr>:" in line]
    assert "[1]<stderr>:Traceback" in shown[0], done.output


def test_rank_killed_in_backward(launch):
    done = launch(3, "torch_faults.py", "killed in backward", timeout=90)
    done.expect_failure("first cause: rank 2").expect_told({0, 1}, culprit=2)
    assert done.code == 128 + 9


def test_collective_in_a_worker(launch):
    done = launch(1, "torch_faults.py", "collective in a worker", timeout=90)
    done.expect_failure("forked from a rank")


def test_workers_that_end_disturb_nobody(launch):
    done = launch(2, "torch_faults.py", "worker that ends", timeout=90).expect_success()
    assert done.output.count("done") == 2


def test_interrupt_while_waiting(launch):
    done = launch(2, "torch_faults.py", "interrupt", timeout=90)
    done.expect_failure("[0]<stdout>:interrupted")
    assert done.code == 9
