"""farandole.core: operations, life and faults, without NumPy and PyTorch."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest


@pytest.mark.parametrize("np", [1, 2, 3])
def test_operations(launch, np):
    done = launch(np, "core_operations.py").expect_success()
    assert done.output.count("all cases passed") == np


@pytest.mark.parametrize("np", [2, 4])
def test_children_of_ranks(launch, np):
    done = launch(np, "children.py", timeout=100).expect_success()
    assert done.output.count("all cases passed") == np


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_a_child_that_initialises_is_refused_and_its_rank_goes_on(launch, method):
    done = launch(2, "children_unguarded.py", method, timeout=60).expect_success()
    assert done.output.count("trained") == 2
    assert done.output.count('if __name__ == "__main__":') == 2, done.output
    assert "is still running" in done.output
    assert "no rank got this far" not in done.output


def test_exception_ends_the_job_and_is_shown_first(launch):
    done = launch(3, "core_faults.py", "exception", timeout=60)
    done.expect_failure("inner_function_of_the_loop", "KeyError: 'the loop broke'")
    assert done.code == 1
    assert "first cause: rank 2" in done.output
    shown = [line for line in done.output.splitlines() if ">:" in line]
    assert "[2]<stderr>:Traceback" in shown[0], done.output


def test_exit_functions_run_after_an_exception(launch):
    done = launch(2, "core_faults.py", "atexit", timeout=60)
    done.expect_failure("at exit 1", "SystemError: now", "first cause: rank 1")


def test_killed_rank_is_named(launch):
    done = launch(3, "core_faults.py", "killed", timeout=60)
    done.expect_failure("first cause: rank 2").expect_told({0, 1}, culprit=2)
    assert done.code == 128 + 9


def test_names_of_shared_memory_go_with_their_process(launch):
    done = launch(2, "core_faults.py", "killed with a name", timeout=60).expect_failure("named")
    name = done.output.split("named ")[1].split()[0]
    assert not os.path.exists(name)


@pytest.mark.parametrize("how", ["left", "left at once"])
def test_rank_that_leaves_while_it_is_needed(launch, how):
    launch(2, "core_faults.py", how, timeout=60).expect_failure("rank 0 was told: rank 1")


@pytest.mark.parametrize("how", ["exit code", "SystemExit", "SystemExit while pending"])
def test_exit_with_a_code_is_the_first_cause(launch, how):
    done = launch(2, "core_faults.py", how, timeout=60)
    done.expect_failure("first cause: rank 1", "exited with code 7")
    assert done.code == 7


def test_an_exit_that_is_caught_changes_nothing(launch):
    done = launch(2, "core_faults.py", "exit caught", timeout=60).expect_success()
    assert done.output.count("leaves") == 2


@pytest.mark.parametrize("how", ["interrupt", "interrupt in a thread", "init without the others"])
def test_interrupt_while_waiting(launch, how):
    done = launch(2, "core_faults.py", how, timeout=60)
    done.expect_failure("[0]<stdout>:interrupted", "first cause: rank 0")
    assert done.code == 9


def test_leaving_with_operations_in_flight(launch):
    done = launch(2, "core_faults.py", "pending at exit", timeout=60)
    assert done.output.count("leaves") == 2
    assert done.code == 0, done.output


def _python(code, **env):
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **env},
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_library_that_is_not_there():
    done = _python("import farandole; farandole.init()", FARANDOLE_LIBRARY="/no/such/file.so")
    assert done.returncode == 1
    assert "FARANDOLE_LIBRARY=/no/such/file.so: there is no such file" in done.stderr


def test_library_that_is_another():
    done = _python(
        "import ctypes, farandole; farandole.init()",
        FARANDOLE_LIBRARY=os.__file__,
    )
    assert done.returncode == 1
    assert "cannot be loaded" in done.stderr


def test_alone_without_a_launcher():
    done = _python("import farandole as f; f.init(); f.barrier(); print(f.rank(), f.size())")
    assert (done.returncode, done.stdout) == (0, "0 1\n"), done.stderr


def test_errors_can_be_pickled():
    import pickle

    from farandole import errors

    for kind in errors.BY_CODE.values():
        error = kind("text", 3, "host", "tensor")
        copy = pickle.loads(pickle.dumps(error))
        assert type(copy) is kind and str(copy) == "text"
        assert (copy.rank, copy.host, copy.tensor) == (3, "host", "tensor")
        assert isinstance(copy, errors.Error) and isinstance(copy, RuntimeError)
