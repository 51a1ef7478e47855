"""The graph operations, compiled against the TensorFlow that is installed: once, then from a cache.

The cache is FARANDOLE_CACHE, or farandole in XDG_CACHE_HOME or ~/.cache; where that cannot be
written, a folder of this user's in the temporary directory. A library's name tells TensorFlow's
version and a digest of everything it was made of, so versions live side by side. It is written
under another name and renamed; its digest is beside it, so a damaged one is compiled again.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import shlex
import shutil
import stat
import subprocess
import sys
import tempfile
from typing import Iterator

from .. import _library

_HERE = os.path.join(os.path.dirname(os.path.realpath(__file__)), "ops")
_SOURCES = ("all.cc", "kernels.cc", "registrations.cc", "step.h", "pending.h", "library.h")
_TIMEOUT = 600  # seconds for the compiler, on the busiest machine


class CannotBuild(Exception):
    """One line that says why there are no compiled operations."""


def say(text: str) -> None:
    sys.stderr.write(f"farandole: {text}\n")
    sys.stderr.flush()


def _header_folder() -> str:
    """Where farandole.h is: in the source tree, or in the installed tree or wheel."""
    folders: list[str] = []
    package = os.path.dirname(os.path.dirname(_HERE))
    folders.append(os.path.join(package, "_tree", "include"))
    folders.append(os.path.join(os.path.dirname(os.path.dirname(package)), "include"))
    try:
        library = os.path.realpath(_library.find_library())
        folders.append(os.path.join(os.path.dirname(os.path.dirname(library)), "include"))
    except ImportError:
        pass
    for folder in folders:
        if os.path.isfile(os.path.join(folder, "farandole.h")):
            return folder
    raise CannotBuild(f"farandole.h was not found in {', '.join(folders)}")


def _compiler() -> list[str]:
    """CXX, or the first of the usual ones."""
    given = os.environ.get("CXX")
    if given:
        words = shlex.split(given)
        if words and shutil.which(words[0]):
            return words
        raise CannotBuild(f"CXX={given}: there is no such compiler")
    for name in ("g++", "clang++", "c++"):
        if shutil.which(name):
            return [name]
    raise CannotBuild("there is no C++ compiler (g++ or clang++; Debian: apt-get install g++)")


def _flags() -> list[str]:
    import tensorflow as tf

    # System folders: warnings in TensorFlow's headers are not for our readers.
    flags = [
        "-isystem" + each[2:] if each.startswith("-I") else each
        for each in tf.sysconfig.get_compile_flags()
    ]
    return ["-O2", "-fPIC", "-shared", "-fvisibility=hidden", *flags]


def _digest(include: str, flags: list[str]) -> str:
    import tensorflow as tf

    digest = hashlib.sha256()
    paths = [os.path.join(_HERE, name) for name in _SOURCES]
    for path in [*paths, os.path.join(include, "farandole.h")]:
        with open(path, "rb") as file:
            digest.update(file.read())
    words = [tf.version.VERSION, tf.version.GIT_VERSION, *flags, os.uname().machine]
    digest.update("\0".join(words).encode())
    return digest.hexdigest()[:16]


def _folders() -> Iterator[str]:
    given = os.environ.get("FARANDOLE_CACHE")
    if given:
        yield given
    else:
        base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
        yield os.path.join(base, "farandole")
    yield os.path.join(tempfile.gettempdir(), f"farandole-{os.getuid()}")


def _is_ours(path: str) -> bool:
    """Nobody else may have put there what we load."""
    try:
        status = os.lstat(path)
    except OSError:
        return False
    if stat.S_ISLNK(status.st_mode) or status.st_uid not in (0, os.getuid()):
        return False
    return not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def _is_whole(path: str) -> bool:
    """Whether a library is what the compiler wrote."""
    if not _is_ours(path) or not _is_ours(path + ".sha256"):
        return False
    try:
        with open(path + ".sha256") as file:
            expected = file.read().strip()
        with open(path, "rb") as file:
            return hashlib.sha256(file.read()).hexdigest() == expected
    except OSError:
        return False


def _compile(target: str, include: str, flags: list[str]) -> None:
    import tensorflow as tf

    compiler = _compiler()
    say(
        f"compiling the operations for TensorFlow {tf.version.VERSION} into {target} "
        "(once, about 20 s)"
    )
    handle, unfinished = tempfile.mkstemp(suffix=".so", prefix=".", dir=os.path.dirname(target))
    os.close(handle)
    try:
        words = [
            *compiler,
            *flags,
            "-I" + include,
            os.path.join(_HERE, "all.cc"),
            "-o",
            unfinished,
            *tf.sysconfig.get_link_flags(),
            "-ldl",
        ]
        try:
            done = subprocess.run(
                words,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                timeout=_TIMEOUT,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise CannotBuild(f"{compiler[0]} did not work: {error}") from None
        if done.returncode:
            lines = done.stdout.decode("utf-8", "replace").strip().splitlines()
            first = next((line for line in lines if "error" in line), lines[0] if lines else "")
            raise CannotBuild(f"{compiler[0]} failed with code {done.returncode}: {first}")
        with open(unfinished, "rb") as file:
            digest = hashlib.sha256(file.read()).hexdigest()
        os.chmod(unfinished, 0o644)
        # The digest first: a library without its own is not used.
        with open(unfinished + ".sha256", "w") as file:
            file.write(digest + "\n")
        os.chmod(unfinished + ".sha256", 0o644)
        os.replace(unfinished + ".sha256", target + ".sha256")
        os.replace(unfinished, target)
    finally:
        for path in (unfinished, unfinished + ".sha256"):
            with contextlib.suppress(OSError):
                os.unlink(path)


def _in_folder(folder: str, name: str, include: str, flags: list[str]) -> str:
    """The library in this folder; OSError if the folder does not serve."""
    target = os.path.join(folder, name)
    if _is_ours(folder) and _is_whole(target):
        return target
    os.makedirs(folder, mode=0o700, exist_ok=True)
    if not _is_ours(folder):
        raise PermissionError(f"{folder} can be written by others")
    with open(os.path.join(folder, name + ".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # one rank compiles, the others of the machine wait
        if not _is_whole(target):
            _compile(target, include, flags)
    return target


def library_path() -> str:
    """The compiled operations for this TensorFlow, compiled now if need be; or CannotBuild."""
    import tensorflow as tf

    include = _header_folder()
    flags = _flags()
    name = f"tensorflow-{tf.version.VERSION}-{_digest(include, flags)}.so"
    trouble: OSError | None = None
    for folder in _folders():
        try:
            return _in_folder(folder, name, include, flags)
        except OSError as error:
            trouble = error
    raise CannotBuild(f"no folder to compile into: {trouble}; set FARANDOLE_CACHE to one")
