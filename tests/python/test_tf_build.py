"""The operations are compiled once, whatever happens to the cache; and can be done without."""

from __future__ import annotations

import importlib.util
import os
import shutil

import pytest

if importlib.util.find_spec("tensorflow") is None:
    pytest.skip("TensorFlow is not installed", allow_module_level=True)

QUIET = {"TF_CPP_MIN_LOG_LEVEL": "3"}
SAID = "compiling the operations for TensorFlow"


def small(launch, np=1, **env):
    return launch(np, "tf_small.py", env={**QUIET, **env}, timeout=240)


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("cache")


def libraries(folder):
    return sorted(folder.glob("tensorflow-*.so"))


def test_ranks_that_come_at_once_compile_once(launch, cache):
    done = small(launch, 2, FARANDOLE_CACHE=str(cache)).expect_success()
    assert done.output.count(SAID) == 1 and done.output.count("compiled works") == 2
    assert len(libraries(cache)) == 1
    assert not [each for each in os.listdir(cache) if each.startswith(".")]


def test_half_written_library_is_made_anew(launch, cache):
    (library,) = libraries(cache)
    whole = library.stat().st_size
    os.truncate(library, whole // 2)
    done = small(launch, FARANDOLE_CACHE=str(cache)).expect_success()
    assert done.output.count(SAID) == 1 and "compiled works" in done.output
    assert library.stat().st_size == whole


def test_cache_that_cannot_be_written(launch, cache, tmp_path):
    other = tmp_path / f"farandole-{os.getuid()}"
    shutil.copytree(cache, other)
    other.chmod(0o700)
    env = {"FARANDOLE_CACHE": "/proc/no/such/folder", "TMPDIR": str(tmp_path)}
    done = small(launch, **env).expect_success()
    assert "compiled works" in done.output and SAID not in done.output


def test_nobody_else_may_have_written_it(launch, cache):
    (library,) = libraries(cache)
    library.chmod(0o666)
    done = small(launch, FARANDOLE_CACHE=str(cache), CXX="no-such-compiler").expect_success()
    assert "plain works" in done.output
    library.chmod(0o644)


def test_without_a_compiler(launch, tmp_path):
    env = {"FARANDOLE_CACHE": str(tmp_path), "CXX": "no-such-compiler"}
    done = small(launch, 2, **env).expect_success()
    assert done.output.count("CXX=no-such-compiler: there is no such compiler") == 1
    assert done.output.count("plain works") == 2
    done = small(launch, FARANDOLE_TENSORFLOW_OPS="compiled", **env)
    done.expect_failure("there are no compiled operations", "no-such-compiler")
