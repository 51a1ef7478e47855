"""The backend "farandole" of torch.distributed."""

from __future__ import annotations

import pytest
import torch


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_every_collective(launch, ranks):
    done = launch(ranks, "c10d_collectives.py").expect_success()
    assert done.output.count("cases passed") == ranks


def test_ddp_and_its_relatives(launch):
    done = launch(2, "c10d_ddp.py").expect_success()
    assert done.output.count("cases passed") == 2


if int(torch.__version__.split(".")[0]) >= 2:

    def test_functional_collectives_and_what_stands_on_them(launch):
        done = launch(2, "c10d_newer.py").expect_success()
        assert done.output.count("cases passed") == 2


def test_errors_leave_the_job_going(launch):
    done = launch(2, "c10d_faults.py", "mismatch", "lie", "refused", "wrong_calls", "timeout")
    assert done.expect_success().output.count("fine") == 10


def test_the_store_answers_while_a_rank_stands_still(launch):
    done = launch(3, "c10d_store.py").expect_success()
    assert done.output.count("passed:") == 9


def test_a_killed_rank_is_named(launch):
    launch(2, "c10d_faults.py", "killed").expect_failure("told:", "rank 1", "killed by signal 9")


def test_a_rank_killed_in_backward_ends_the_job(launch):
    launch(2, "c10d_faults.py", "killed_in_backward").expect_failure("rank 1", "killed by signal 9")


def test_an_exception_is_the_first_cause(launch):
    launch(2, "c10d_faults.py", "exception").expect_failure(
        "ValueError: this is the cause", "first cause: rank 1"
    )
