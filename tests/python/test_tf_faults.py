"""Keras's fit() in which a rank fails: the others learn whose fault it is, and soon."""

from __future__ import annotations

import re

QUIET = {"TF_CPP_MIN_LOG_LEVEL": "3"}
SECONDS = 20  # on the busiest machine; a lost rank is known within one


def moment(pattern, output):
    found = re.search(pattern + r" at (\d+\.\d+)", output)
    assert found, f"{pattern} is missing in:\n{output}"
    return float(found.group(1))


def test_rank_killed_in_fit(launch):
    done = launch(2, "tf_faults.py", "killed", env=QUIET)
    done.expect_failure("first cause: rank 1")
    assert done.code == 128 + 9
    assert "went on" not in done.output
    assert re.search(r"was told: .*farandole: .*rank 1", done.output), done.output
    assert moment("was told", done.output) - moment("kills itself", done.output) < SECONDS


def test_exception_in_fit(launch):
    done = launch(2, "tf_faults.py", "exception", env=QUIET)
    done.expect_failure("KeyError: 'a bad sample'", "first cause: rank 1")
    assert done.code == 1
    assert "went on" not in done.output
