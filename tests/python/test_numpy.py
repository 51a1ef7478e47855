"""farandole.numpy."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize("np", [1, 3])
def test_operations(launch, np):
    done = launch(np, "numpy_operations.py").expect_success()
    assert done.output.count("all cases passed") == np
