"""TensorFlow where operations cannot be compiled: Python functions instead."""

from __future__ import annotations

import pytest

SCRIPTS = ("tf_operations", "tf_training")
SESSIONS = ("case_session_with_placeholders", "case_session_with_one_thread")
QUIET = {"TF_CPP_MIN_LOG_LEVEL": "3"}


def test_everything(launch):
    env = {"FARANDOLE_TENSORFLOW_OPS": "plain", **QUIET}
    done = launch(2, "suite.py", *SCRIPTS, env=env, timeout=280).expect_success()
    assert done.output.count("all cases passed") == 2 * len(SCRIPTS)


@pytest.mark.parametrize("kind", ["plain", "compiled"])
def test_sessions_on_one_rank(launch, kind):
    env = {"FARANDOLE_TENSORFLOW_OPS": kind, **QUIET}
    launch(1, "tf_training.py", *SESSIONS, env=env, timeout=200).expect_success()


def test_ranks_agree_on_a_kind(launch, tmp_path):
    """One rank has no compiler: all use what that one can."""
    env = {"WITHOUT": "1", "EMPTY": str(tmp_path), **QUIET}
    done = launch(2, "tf_mixed.py", env=env, timeout=200).expect_success()
    assert done.output.count("plain works") == 2
    said = "no compiled operations on rank 1: CXX=no-such-compiler"
    assert done.output.count(said) == 1, done.output


def test_ranks_that_cannot_agree_are_told(launch, tmp_path):
    env = {"WITHOUT": "1", "EMPTY": str(tmp_path), "MUST": "0", **QUIET}
    done = launch(2, "tf_mixed.py", env=env, timeout=200)
    done.expect_failure("rank 1 has no compiled operations for TensorFlow", "but rank 0 uses them")
