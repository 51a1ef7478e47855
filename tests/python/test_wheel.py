"""The wheels: made, installed offline into a fresh virtual environment, and used from there."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from conftest import HERE, ROOT, TREE, run_command

SCRIPT = """
import os
import farandole
import horovod
farandole.init()
assert "site-packages" in farandole.__file__, farandole.__file__
farandole.barrier()
print("rank", farandole.rank(), "of", farandole.size(), horovod.__version__)
"""


@pytest.fixture(scope="module")
def wheels(tmp_path_factory):
    out = tmp_path_factory.mktemp("wheels")
    subprocess.run([str(ROOT / "tools" / "wheel"), str(TREE), str(out)], check=True, timeout=120)
    return sorted(out.glob("*.whl"))


def test_names_and_tags(wheels):
    names = [each.name for each in wheels]
    assert len(names) == 2
    assert "-py3-none-manylinux_2_34_" in names[0] and names[0].startswith("farandole-")
    assert names[1].startswith("farandole_horovod-") and names[1].endswith("-py3-none-any.whl")


def test_no_symbol_of_a_newer_glibc(wheels, tmp_path):
    with zipfile.ZipFile(wheels[0]) as archive:
        binaries = [
            each for each in archive.namelist() if each.endswith("bin/farandole") or ".so" in each
        ]
        archive.extractall(tmp_path, binaries)
    assert len(binaries) >= 2
    for each in binaries:
        text = subprocess.run(
            ["readelf", "-V", str(tmp_path / each)], capture_output=True, text=True, check=True
        ).stdout
        for word in text.split():
            if word.startswith("GLIBC_2."):
                assert int(word.split(".")[1]) <= 34, f"{each} needs {word}"


def test_install_offline_and_run(wheels, tmp_path):
    place = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", str(place)], check=True, timeout=120)
    python = str(place / "bin" / "python")
    install = [python, "-m", "pip", "install", "--no-index", "-q"]
    run_command(install + [str(each) for each in wheels]).expect_success()
    # pip makes the same one of a source folder that has been built.
    built = tmp_path / "built"
    make = [python, "-m", "pip", "wheel", "--no-index", "--no-deps", "-q", "-w", str(built)]
    where = ["--config-settings", f"build-dir={TREE}"]
    run_command([*make, *where, str(ROOT)]).expect_success()
    assert (built / wheels[0].name).read_bytes() == wheels[0].read_bytes()
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    for name in ("farandole run", "horovodrun"):
        words = name.split()
        words[0] = str(place / "bin" / words[0])
        done = run_command([*words, "-np", "2", python, str(script)], cwd=tmp_path).expect_success()
        for rank in (0, 1):
            assert f"rank {rank} of 2" in done.output
    words = [
        python,
        "-c",
        "import farandole, run_functions as f; print(farandole.run(f.square, (3,), np=2))",
    ]
    done = run_command(words, env={"PYTHONPATH": str(HERE / "ranks")}, cwd=tmp_path)
    assert "[(0, 9), (1, 9)]" in done.expect_success().output


# As a container sees it that has only the build folder: read-only, under another name, without the
# sources.
MOUNTED = """
set -eu
mount --bind "$1" /mnt
mount -o remount,bind,ro /mnt
mount -t tmpfs none "$2"
cd /
exec /mnt/bin/farandole run -np 2 /usr/bin/python3 -c "$3"
"""


def test_build_tree_through_a_bind_mount():
    code = "import farandole as f; f.init(); print(f.__file__, f.size())"
    unshared = ["unshare", "--mount", "--propagation", "private", "sh", "-c", MOUNTED, "sh"]
    done = run_command([*unshared, str(TREE), str(ROOT), code], cwd=Path("/")).expect_success()
    assert done.output.count("/mnt/lib/farandole/python/farandole/__init__.py 2") == 2, done.output
