"""farandole.torch: collective operations, and the optimizer."""

from __future__ import annotations

import pytest

SCRIPTS = ("torch_operations", "torch_optimizer")


@pytest.mark.parametrize("np", [1, 3])
def test_operations_and_optimizer(launch, np):
    done = launch(np, "suite.py", *SCRIPTS, timeout=240).expect_success()
    assert done.output.count("all cases passed") == np * len(SCRIPTS)
