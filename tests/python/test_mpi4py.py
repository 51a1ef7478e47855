"""Programs that use mpi4py and Farandole in the same process, under mpirun."""

from __future__ import annotations

import sys

import pytest

from conftest import HERE, ROOT, TREE, run_command

ENVIRONMENT = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "FARANDOLE_LIBRARY": str(TREE / "lib" / "libfarandole.so"),
    "PYTHONPATH": str(ROOT / "python"),
}


@pytest.mark.parametrize("order", ["mpi4py-first", "farandole-first", "forgets"])
@pytest.mark.parametrize("hierarchy", ["on", "off"])
def test_beside_mpi4py(order: str, hierarchy: str) -> None:
    env = {**ENVIRONMENT, "FARANDOLE_HIERARCHY": hierarchy}
    script = str(HERE / "ranks" / "mpi4py_beside.py")
    done = run_command(
        ["mpirun.openmpi", "-n", "2", sys.executable, script, order], env, timeout=60
    ).expect_success()
    assert done.output.count("mpi4py beside farandole: ok") == 2, done.output


# Open MPI is told to let the others live: what ends them is Farandole.
@pytest.mark.parametrize("where", ["barrier", "finalize"])
def test_rank_lost_inside_mpi(where: str) -> None:
    script = str(HERE / "ranks" / "mpi4py_lost.py")
    words = ["mpirun.openmpi", "--mca", "orte_enable_recovery", "1", "-n", "3"]
    done = run_command([*words, sys.executable, script, where], ENVIRONMENT, timeout=60)
    why = {
        "barrier": "so it ends the job: MPI cannot go on without a rank",
        "finalize": "MPI_Finalize would wait for it for ever, so this process ends without it",
    }
    assert why[where] in done.output, done.output
    assert "rank 1 on " in done.output, done.output
