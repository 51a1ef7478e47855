"""farandole.run(fn): a function on several ranks."""

from __future__ import annotations

import sys

import pytest

from conftest import HERE, ROOT, run_command

sys.path.insert(0, str(HERE / "ranks"))
import farandole
import run_functions


def test_values_in_the_order_of_ranks_and_output_shown(capfd):
    assert farandole.run(run_functions.where, (10,), np=3) == [10, 11, 12]
    shown = capfd.readouterr().out
    for rank in range(3):
        assert f"rank {rank} says hello" in shown
    assert "farandole-value" not in shown


def test_large_values():
    count = 3_000_000
    assert [len(each) for each in farandole.run(run_functions.large, (count,), np=2)] == [count] * 2


def test_a_failing_function_is_told(capfd):
    with pytest.raises(RuntimeError, match="exit code 1"):
        farandole.run(run_functions.fails, np=2)
    assert "ValueError: the function's own mistake" in capfd.readouterr().err


def test_a_value_that_cannot_travel(capfd):
    with pytest.raises(RuntimeError):
        farandole.run(run_functions.unsendable, np=1)
    assert "cannot be sent back" in capfd.readouterr().err


def test_a_lambda_without_cloudpickle(monkeypatch):
    monkeypatch.setitem(sys.modules, "cloudpickle", None)
    with pytest.raises(ValueError, match="cloudpickle"):
        farandole.run(lambda: 1, np=1)


def test_a_function_of_the_main_script():
    words = [sys.executable, str(HERE / "ranks" / "run_functions.py")]
    import os

    done = run_command(
        words,
        env={
            "PYTHONPATH": str(ROOT / "python"),
            "FARANDOLE_LIBRARY": os.environ["FARANDOLE_LIBRARY"],
        },
    )
    assert "values [(0, 25), (1, 25)]" in done.expect_success().output


def test_wrong_hosts_are_the_launchers_to_tell(capfd):
    with pytest.raises(RuntimeError, match="exit code 2"):
        farandole.run(run_functions.large, (1,), np=-3)
    assert "-np must be at least 1" in capfd.readouterr().err
