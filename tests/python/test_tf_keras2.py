"""Keras 2 beside a TensorFlow whose own Keras is another: TF_USE_LEGACY_KERAS=1."""

from __future__ import annotations


def test_everything(launch):
    env = {"TF_CPP_MIN_LOG_LEVEL": "3"}
    done = launch(2, "tf_fit.py", env=env, timeout=280).expect_success()
    assert done.output.count("all cases passed") == 2
