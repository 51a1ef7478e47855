"""Small functions that scripts and tests of scripts use."""

from __future__ import annotations

import contextlib
import importlib.util
import os
from typing import Any, Iterator

from farandole.basics import ccl_built, cuda_built, ddl_built
from farandole.basics import rocm_built as _rocm_built


def extension_available(ext_base_name: str, verbose: bool = False) -> bool:
    """Whether scripts for that framework can run here: no extension is needed for it."""
    if ext_base_name in ("torch", "numpy"):
        return importlib.util.find_spec(ext_base_name) is not None
    return False


def check_extension(ext_name: str, ext_env_var: str, pkg_path: str, *args: Any) -> None:
    """There is no extension that could be missing."""


def gloo_built(verbose: bool = False) -> bool:
    return True


def mpi_built(verbose: bool = False) -> bool:
    return False


def nccl_built(verbose: bool = False) -> bool:
    return False


def rocm_built(verbose: bool = False) -> bool:
    return _rocm_built()


def _numbers(version: str) -> tuple[int, ...]:
    """The leading numbers: 2.15.0+cpu is (2, 15, 0)."""
    found = []
    for part in version.split("+")[0].split("."):
        digits = ""
        for letter in part:
            if not letter.isdigit():
                break
            digits += letter
        if not digits:
            break
        found.append(int(digits))
        if digits != part:
            break
    return tuple(found)


def is_version_greater_equal_than(ver: str, target: str) -> bool:
    if not (isinstance(ver, str) and isinstance(target, str)):
        raise ValueError("versions are strings")
    have, need = _numbers(ver), _numbers(target)
    if not have or not need:
        raise ValueError(f"{ver!r} or {target!r} is no version")
    width = max(len(have), len(need))
    return have + (0,) * (width - len(have)) >= need + (0,) * (width - len(need))


@contextlib.contextmanager
def env(**kwargs: str | None) -> Iterator[None]:
    """Environment variables for the time of a block; None takes one away."""
    before: dict[str, str | None] = {name: os.environ.get(name) for name in kwargs}

    def put(values: dict[str, str | None]) -> None:
        for name, value in values.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value

    put(kwargs)
    try:
        yield
    finally:
        put(before)


def num_rank_is_power_2(num_rank: int) -> bool:
    return num_rank > 0 and num_rank & (num_rank - 1) == 0


def split_list(values: list[Any], count: int) -> list[list[Any]]:
    """So many parts, as even as possible."""
    share, more = divmod(len(values), count)
    parts = []
    start = 0
    for i in range(count):
        end = start + share + (1 if i < more else 0)
        parts.append(values[start:end])
        start = end
    return parts
