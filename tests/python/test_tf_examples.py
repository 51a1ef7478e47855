"""The examples of examples/python that use TensorFlow run and learn."""

from __future__ import annotations

import os
import re


def run(launch, script, *options):
    path = f"../../../examples/python/{script}"
    env = {"TF_CPP_MIN_LOG_LEVEL": "3"}
    return launch(2, path, *options, env=env, timeout=180).expect_success().output


def accuracy(output):
    found = re.search(r"accuracy:? (0\.\d+)\s*$", output, re.MULTILINE)
    assert found, output
    return float(found.group(1))


def test_keras_fit(launch, tmp_path):
    words = ("--epochs", "2", "--samples", "4000", "--checkpoints", str(tmp_path))
    output = run(launch, "11_keras_fit.py", *words)
    assert accuracy(output) > 0.3, output
    assert "finished gradual learning rate warmup" in output
    assert sorted(os.listdir(tmp_path)) == ["checkpoint-1.keras", "checkpoint-2.keras"]


def test_session_hooks(launch, tmp_path):
    output = run(launch, "12_session_hooks.py", "--steps", "120", "--checkpoints", str(tmp_path))
    assert accuracy(output) > 0.3, output
    for pattern in (
        r"Saving checkpoints for 0 into .*model\.ckpt",
        r"loss = \d+\.\d+, step = \d+",
        r"global_step/sec: \d+",
        r"Number of tasks:  2",
        r"Total time is: \d+\.\d+",
    ):
        assert re.search(pattern, output), f"{pattern} is missing in:\n{output}"


def test_gradient_tape(launch):
    assert accuracy(run(launch, "13_gradient_tape.py", "--steps", "100")) > 0.3


def test_synthetic_benchmark(launch):
    output = run(launch, "14_tensorflow_synthetic_benchmark.py", "--num-iters", "2")
    assert re.search(r"Total img/sec on 2 rank\(s\): \d+", output), output
