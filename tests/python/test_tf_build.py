"""The operations are compiled once, whatever happens to the cache; and can be done without."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile

import pytest

SAID = "compiling the operations for TensorFlow"
MISSING = "no-such-compiler"


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    """A folder with the real library, which the first test has compiled."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def build_ops(monkeypatch, cache):
    """The module, in this process, with the cache above and no compiler."""
    from farandole.tensorflow import build_ops

    monkeypatch.setenv("FARANDOLE_CACHE", str(cache))
    monkeypatch.setenv("CXX", MISSING)
    monkeypatch.setattr(tempfile, "tempdir", None)  # TMPDIR is looked at again
    return build_ops


@pytest.fixture
def copying_compiler(monkeypatch, cache, tmp_path):
    """A "compiler" whose result is the library that exists: compiling again would take long."""
    (library,) = libraries(cache)
    shutil.copy(library, tmp_path / "kept.so")
    script = tmp_path / "compiler"
    script.write_text(
        f'#!/bin/sh\nwhile [ "$1" != -o ]; do shift; done\ncp "{tmp_path}/kept.so" "$2"\n'
    )
    script.chmod(0o755)

    def use():
        monkeypatch.setenv("CXX", str(script))

    return use


def small(launch, np, **env):
    env["TF_CPP_MIN_LOG_LEVEL"] = "3"
    return launch(np, "tf_small.py", env=env, timeout=240)


def libraries(folder):
    return sorted(folder.glob("tensorflow-*.so"))


def test_ranks_that_come_at_once_compile_once(launch, cache):
    done = small(launch, 2, FARANDOLE_CACHE=str(cache)).expect_success()
    assert done.output.count(SAID) == 1 and done.output.count("compiled works") == 2
    assert len(libraries(cache)) == 1
    assert not [each for each in os.listdir(cache) if each.startswith(".")]


def test_without_a_compiler(launch, tmp_path):
    done = small(launch, 2, FARANDOLE_CACHE=str(tmp_path), CXX=MISSING).expect_success()
    assert done.output.count(f"CXX={MISSING}: there is no such compiler") == 1
    assert done.output.count("plain works") == 2


def test_compiled_or_nothing(build_ops, monkeypatch, tmp_path):
    from farandole.errors import Unavailable
    from farandole.tensorflow import _backend

    monkeypatch.setenv("FARANDOLE_CACHE", str(tmp_path))
    monkeypatch.setenv("FARANDOLE_TENSORFLOW_OPS", "compiled")
    with pytest.raises(Unavailable, match=f"no compiled operations.*{MISSING}"):
        _backend._make()


def test_found_again(build_ops, cache):
    assert build_ops.library_path() == str(libraries(cache)[0])


def test_half_written_library_is_made_anew(build_ops, cache, copying_compiler, capfd):
    (library,) = libraries(cache)
    whole = library.read_bytes()
    os.truncate(library, len(whole) // 2)
    with pytest.raises(build_ops.CannotBuild, match=MISSING):
        build_ops.library_path()  # not used as it is
    copying_compiler()
    assert build_ops.library_path() == str(library)
    assert library.read_bytes() == whole
    assert capfd.readouterr().err.count(SAID) == 1


def test_library_without_its_digest_is_made_anew(build_ops, cache, copying_compiler):
    (library,) = libraries(cache)
    copying_compiler()
    os.unlink(f"{library}.sha256")
    build_ops.library_path()
    assert os.path.exists(f"{library}.sha256")


def test_nobody_else_may_have_written_it(build_ops, cache, copying_compiler):
    (library,) = libraries(cache)
    library.chmod(0o666)
    with pytest.raises(build_ops.CannotBuild, match=MISSING):
        build_ops.library_path()
    copying_compiler()
    build_ops.library_path()
    assert stat.S_IMODE(library.stat().st_mode) == 0o644


def test_cache_that_cannot_be_written(build_ops, cache, monkeypatch, tmp_path):
    other = tmp_path / f"farandole-{os.getuid()}"
    shutil.copytree(cache, other)
    other.chmod(0o700)
    monkeypatch.setenv("FARANDOLE_CACHE", "/proc/no/such/folder")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    assert build_ops.library_path() == str(libraries(other)[0])
    other.chmod(0o777)
    with pytest.raises(build_ops.CannotBuild, match="set FARANDOLE_CACHE"):
        build_ops.library_path()


def test_compiler_that_fails(build_ops, monkeypatch, tmp_path):
    script = tmp_path / "compiler"
    script.write_text("#!/bin/sh\necho 'all.cc:1: error: bad day'; exit 3\n")
    script.chmod(0o755)
    monkeypatch.setenv("FARANDOLE_CACHE", str(tmp_path / "empty"))
    monkeypatch.setenv("CXX", str(script))
    with pytest.raises(
        build_ops.CannotBuild, match=r"failed with code 3: all\.cc:1: error: bad day"
    ):
        build_ops.library_path()
    assert not [each for each in os.listdir(tmp_path / "empty") if not each.endswith(".lock")]


def test_versions_live_side_by_side(build_ops, cache):
    import tensorflow as tf

    other = cache / "tensorflow-2.9.3-0123456789abcdef.so"
    other.write_bytes(b"of another version")
    assert os.path.basename(build_ops.library_path()).startswith(f"tensorflow-{tf.version.VERSION}")
    assert other.read_bytes() == b"of another version"
