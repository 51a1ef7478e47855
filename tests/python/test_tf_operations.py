"""farandole.tensorflow: collective operations, compiled and plain."""

from __future__ import annotations

import importlib.util

import pytest

if importlib.util.find_spec("tensorflow") is None:
    pytest.skip("TensorFlow is not installed", allow_module_level=True)


@pytest.mark.parametrize("np, kind", [(3, "compiled"), (2, "plain")])
def test_operations(launch, np, kind):
    env = {"FARANDOLE_TENSORFLOW_OPS": kind, "TF_CPP_MIN_LOG_LEVEL": "3"}
    done = launch(np, "tf_operations.py", env=env, timeout=240).expect_success()
    assert done.output.count("all cases passed") == np
