"""What `farandole run` does for scripts that know nothing of it: --ddp-backend, paths, hook."""

from __future__ import annotations

from conftest import TREE, version_of_torch

OURS = ("--ddp-backend", "farandole")


def test_other_backends_become_ours(launch):
    asked = ["gloo", "nccl", "mpi"]
    if version_of_torch() >= (2, 0):
        asked += ["default", "cpu:gloo,cuda:nccl"]
    done = launch(2, "ddp_backend.py", "farandole", *asked, options=OURS).expect_success()
    assert done.output.count("fine") == 2 * len(asked)


def test_a_script_keeps_the_backend_it_asks_for(launch):
    launch(2, "ddp_backend.py", "gloo", "gloo").expect_success()


def test_scripts_for_oneccl(launch):
    launch(2, "ddp_backend.py", "ccl", "ccl").expect_success()


def test_no_other_word(launch):
    launch(1, "sees.py", options=("--ddp-backend", "glue")).expect_failure(
        "--ddp-backend takes farandole"
    )


def test_packages_are_found_and_the_users_own_come_first(launch, tmp_path):
    done = launch(1, "sees.py", "farandole", "horovod", "torch_ccl").expect_success()
    assert str(TREE / "lib" / "farandole" / "python" / "farandole") in done.output
    assert ": no" not in done.output
    for name in ("horovod", "oneccl_bindings_for_pytorch"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("mark = 'the real one'\n")
    done = launch(
        1, "sees.py", "horovod", "oneccl_bindings_for_pytorch", env={"PYTHONPATH": str(tmp_path)}
    ).expect_success()
    assert done.output.count("the real one") == 2


def test_the_users_sitecustomize_runs(launch, tmp_path):
    (tmp_path / "sitecustomize.py").write_text("mark = 'mine'\nprint('customised')\n")
    done = launch(
        1, "sees.py", "sitecustomize", "farandole", env={"PYTHONPATH": str(tmp_path)}
    ).expect_success()
    assert "customised" in done.output and "mine" in done.output
    assert done.output.count("customised") == 1
    assert "farandole: no" not in done.output
