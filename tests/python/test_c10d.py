"""The backend "farandole" of torch.distributed."""

from __future__ import annotations

from conftest import version_of_torch

FAULTS = ("mismatch", "lie", "refused", "wrong_calls", "timeout")


def test_every_collective_alone(launch):
    done = launch(1, "c10d_collectives.py").expect_success()
    assert done.output.count("cases passed") == 1


def test_two_ranks(launch):
    """Every collective, DDP and its relatives, and errors that leave the job going."""
    scripts = ("c10d_collectives", "c10d_ddp")
    faults = f"c10d_faults:{','.join(FAULTS)}"
    done = launch(2, "suite.py", *scripts, faults, timeout=240).expect_success()
    assert done.output.count("cases passed") == 2 * len(scripts)
    assert done.output.count("fine") == 2 * len(FAULTS)


if version_of_torch() >= (2, 0):

    def test_functional_collectives_and_what_stands_on_them(launch):
        done = launch(2, "c10d_newer.py").expect_success()
        assert done.output.count("cases passed") == 2


def test_three_ranks(launch):
    """Every collective, and the store, which answers while a rank stands still."""
    done = launch(3, "suite.py", "c10d_collectives", "c10d_store", timeout=240).expect_success()
    assert done.output.count("cases passed") == 3
    assert done.output.count("passed:") == 9


def test_a_killed_rank_is_named(launch):
    launch(2, "c10d_faults.py", "killed").expect_failure("told:", "rank 1", "killed by signal 9")


def test_a_rank_killed_in_backward_ends_the_job(launch):
    launch(2, "c10d_faults.py", "killed_in_backward").expect_failure("rank 1", "killed by signal 9")


def test_an_exception_is_the_first_cause(launch):
    launch(2, "c10d_faults.py", "exception").expect_failure(
        "ValueError: this is the cause", "first cause: rank 1"
    )
