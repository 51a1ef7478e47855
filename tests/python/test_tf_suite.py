"""TensorFlow and Keras with compiled operations."""

from __future__ import annotations

import os
from importlib import metadata
from pathlib import Path

QUIET = {"TF_CPP_MIN_LOG_LEVEL": "3"}
SCRIPTS = ("tf_operations", "tf_training", "tf_fit")


def test_everything(launch):
    env = {"FARANDOLE_TENSORFLOW_OPS": "compiled", **QUIET}
    done = launch(2, "suite.py", *SCRIPTS, env=env, timeout=280).expect_success()
    assert done.output.count("all cases passed") == 2 * len(SCRIPTS)
    # All versions share the folder that CTest names.
    cache = Path(os.environ["FARANDOLE_CACHE"])
    assert list(cache.glob(f"tensorflow-{metadata.version('tensorflow-cpu')}-*.so"))
