"""The examples of examples/python run and learn."""

from __future__ import annotations

import os
import re

import pytest

pytest.importorskip("torch")

_DATA = os.environ.get("FASHION_MNIST", "/usr/share/datasets/fashion-mnist")
pytestmark = pytest.mark.skipif(
    not os.path.isdir(_DATA), reason="dataset-fashion-mnist is not installed"
)


@pytest.mark.parametrize(
    "script, pattern, least, options",
    [
        (
            "01_fashion_mnist_farandole.py",
            r"accuracy (0\.\d+)",
            0.3,
            ("--samples", "2560", "--test-samples", "1000"),
        ),
        ("02_fashion_mnist_horovod.py", r"Accuracy: (\d+\.\d+)%", 20.0, ("--samples", "4000")),
    ],
)
def test_example(launch, script, pattern, least, options):
    words = ("--epochs", "1", *options)
    done = launch(2, f"../../../examples/python/{script}", *words, timeout=180).expect_success()
    found = re.search(pattern, done.output)
    assert found and float(found.group(1)) > least, done.output
