"""farandole.torch: collective operations, and the optimizer."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize("np", [1, 3])
def test_operations(launch, np):
    done = launch(np, "torch_operations.py").expect_success()
    assert done.output.count("all cases passed") == np


@pytest.mark.parametrize("np", [1, 3])
def test_optimizer(launch, np):
    done = launch(np, "torch_optimizer.py").expect_success()
    assert done.output.count("all cases passed") == np
