"""farandole.tensorflow and farandole.tensorflow.keras: training, and training that breaks."""

from __future__ import annotations

import importlib.util

import pytest

if importlib.util.find_spec("tensorflow") is None:
    pytest.skip("TensorFlow is not installed", allow_module_level=True)

QUIET = {"TF_CPP_MIN_LOG_LEVEL": "3"}


@pytest.mark.parametrize("script", ["tf_training.py", "tf_fit.py"])
def test_training(launch, script):
    done = launch(2, script, env=QUIET, timeout=240).expect_success()
    assert done.output.count("all cases passed") == 2


def test_rank_killed_in_fit(launch):
    done = launch(2, "tf_faults.py", "killed", env=QUIET, timeout=120)
    done.expect_failure("first cause: rank 1")
    assert done.code == 128 + 9
    assert "went on" not in done.output


def test_exception_in_fit(launch):
    done = launch(2, "tf_faults.py", "exception", env=QUIET, timeout=120)
    done.expect_failure("KeyError: 'a bad sample'", "first cause: rank 1")
    assert done.code == 1
