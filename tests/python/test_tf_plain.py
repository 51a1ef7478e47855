"""TensorFlow where operations cannot be compiled: Python functions instead."""

from __future__ import annotations

SCRIPTS = ("tf_operations", "tf_training")


def test_everything(launch):
    env = {"FARANDOLE_TENSORFLOW_OPS": "plain", "TF_CPP_MIN_LOG_LEVEL": "3"}
    done = launch(2, "tf_suite.py", *SCRIPTS, env=env, timeout=280).expect_success()
    assert done.output.count("all cases passed") == 2 * len(SCRIPTS)
