"""The examples of examples/python run and learn."""

from __future__ import annotations

import os
import re

import pytest
import torch

from conftest import command, run_command

EXAMPLES = "../../../examples/python"


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
        ("03_fashion_mnist_ddp.py", r"accuracy=(0\.\d+)", 0.2, ("--samples", "4000")),
    ],
)
def test_example(launch, script, pattern, least, options):
    words = ("--epochs", "1", *options)
    done = launch(2, f"{EXAMPLES}/{script}", *words, timeout=180).expect_success()
    found = re.search(pattern, done.output)
    assert found and float(found.group(1)) > least, done.output


def test_model_is_saved_once_and_backend_replaced(tmp_path):
    words = command(
        2,
        f"{EXAMPLES}/03_fashion_mnist_ddp.py",
        *("--no-cuda", "--save-model", "--samples", "640"),
        options=("--ddp-backend", "farandole"),
    )
    done = run_command(words, cwd=tmp_path).expect_success()
    assert done.output.count("Using distributed PyTorch with farandole backend") == 2, done.output
    assert os.listdir(tmp_path) == ["mnist_cnn.pt"]
    assert "decision.2.bias" in torch.load(tmp_path / "mnist_cnn.pt")


def test_synthetic_benchmark(launch):
    try:
        import torchvision  # noqa: F401

        model = ("--model", "resnet18", "--image-size", "32")
    except ImportError:  # Debian's PyTorch comes without
        model = ("--model", "small", "--image-size", "64")
    words = (*model, "--batch-size", "2", "--iterations", "2", "--steps", "2")
    done = launch(2, f"{EXAMPLES}/04_synthetic_benchmark.py", *words).expect_success()
    for rank in (0, 1):
        assert re.search(rf"Img/sec of rank {rank}: \d+\.\d \+-\d+\.\d", done.output), done.output
    total = re.search(r"Total img/sec on 2 rank\(s\): (\d+\.\d)", done.output)
    assert total and float(total.group(1)) > 0, done.output
