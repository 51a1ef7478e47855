"""Ranks that torchrun has started, on this machine and without a secret: they meet on loopback."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from conftest import HERE, ROOT, TREE, run_command


@pytest.mark.parametrize("how", ["itself", "backend"])
def test_torchrun(how: str, tmp_path: Path) -> None:
    env = {
        "FARANDOLE_LIBRARY": str(TREE / "lib" / "libfarandole.so"),
        "PYTHONPATH": str(ROOT / "python"),
        "XDG_CACHE_HOME": str(tmp_path),
    }
    words = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2"]
    script = str(HERE / "ranks" / "torchrun_script.py")
    done = run_command([*words, script, how], env, timeout=120).expect_success()
    assert done.output.count(f"torchrun, {how}: one of 2 ok") == 2, done.output
