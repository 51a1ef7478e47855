"""Makes torch.distributed know the backend, and the store that goes with it."""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
import sys
from typing import Any, Callable, Iterator

import torch.distributed as dist
from torch.distributed import distributed_c10d

NAME = "farandole"
# What `farandole run --ddp-backend farandole` replaces.
REPLACED = ("gloo", "mpi", "nccl", "ccl", "ucc")
_SCHEME = "farandole"
_registered = False
# Names that lead to our process group.
_ours: set[str] = set()
_meetings = itertools.count()


def create(options: Any, _backend_options: Any = None) -> Any:
    """Called by torch.distributed for every group this rank is a member of."""
    from .. import core, errors
    from .process_group import ProcessGroup

    core.init()
    ranks = list(options.global_ranks_in_group) or list(range(options.group_size))
    expected = len(ranks) if options.global_ranks_in_group else core.size()
    if options.group_size != expected or max(ranks) >= core.size():
        raise errors.InvalidArgument(
            f"torch.distributed was told of {options.group_size} ranks, this job has "
            f"{core.size()}: start it with: farandole run -np N …"
        )
    if ranks[options.group_rank] != core.rank():
        raise errors.InvalidArgument(
            f"torch.distributed was told that this is rank {ranks[options.group_rank]}, in the "
            f"job it is rank {core.rank()}: leave rank= out"
        )
    return ProcessGroup(options.group_rank, options.group_size, ranks, options.timeout)


def _rendezvous(url: str, **_: Any) -> Iterator[tuple[Any, int, int]]:
    """farandole:// — ranks and store of the job; no address is needed."""
    from urllib.parse import parse_qs, urlparse

    from .. import core, errors
    from .store import store

    core.init()
    query = parse_qs(urlparse(url).query)
    for key, found in (("rank", core.rank()), ("world_size", core.size())):
        given = int(query.get(key, ["-1"])[0])
        if given not in (-1, found):
            raise errors.InvalidArgument(
                f"init_process_group was told {key}={given}, in this job it is {found}: "
                "start as many ranks as the script expects, or leave it out"
            )
    # Keys of an earlier init_process_group must not be seen by the next one.
    prefix = f"init{core.generation()}.{next(_meetings)}"
    yield dist.PrefixStore(prefix, store()), core.rank(), core.size()


def backend_for(backend: str | None, replace: bool) -> str | None:
    """What is asked for, or ours instead: "gloo", "cpu:gloo,cuda:nccl", None in newer versions."""
    if backend is None:
        return NAME if replace else None
    names = {part.split(":")[-1].strip().lower() for part in str(backend).split(",")}
    if names == {NAME}:
        return NAME
    return NAME if replace and names <= set(REPLACED) | {NAME} else backend


@contextlib.contextmanager
def _exceptions_shown_first() -> Iterator[None]:
    """Newer versions of PyTorch hold back what sys.excepthook prints until it returns; ours, which
    ends the rank, does not return. So PyTorch's goes inside ours."""
    from .. import leaving

    if sys.excepthook is not leaving._on_exception:
        yield
        return
    sys.excepthook = leaving._previous_hook
    try:
        yield
    finally:
        leaving._previous_hook = sys.excepthook
        sys.excepthook = leaving._on_exception


def _wrap_init(original: Callable[..., Any], replace: bool) -> Callable[..., Any]:
    @functools.wraps(original)
    def init_process_group(
        backend: Any = None, init_method: Any = None, *args: Any, **kwargs: Any
    ) -> Any:
        chosen = backend_for(backend, replace)
        if chosen is not None and chosen.lower() in _ours:
            from .. import core

            core.init()
            if kwargs.get("store") is None and len(args) < 4:
                init_method = _SCHEME + "://"  # whatever address the script has: none is needed
        with _exceptions_shown_first():
            return original(chosen, init_method, *args, **kwargs)

    return init_process_group


def _wrap_new_group(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def new_group(
        ranks: Any = None, timeout: Any = None, backend: Any = None, *args: Any, **kwargs: Any
    ) -> Any:
        if timeout is not None:
            kwargs["timeout"] = timeout
        if backend is not None:
            backend = backend_for(backend, True)
        return original(ranks, *args, backend=backend, **kwargs)

    return new_group


def _wrap_monitored_barrier(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def monitored_barrier(
        group: Any = None, timeout: Any = None, wait_all_ranks: bool = False
    ) -> Any:
        from .process_group import ProcessGroup

        ours = group
        if group is None or group is getattr(dist.group, "WORLD", None):
            ours = distributed_c10d._get_default_group()
        if isinstance(ours, ProcessGroup):
            return ours.monitored_barrier(timeout, wait_all_ranks)
        return original(group, timeout, wait_all_ranks)

    return monitored_barrier


def _wrap_destroy(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def destroy_process_group(group: Any = None) -> Any:
        """1.13 only forgets groups; ours have a process set to give back."""
        from .process_group import ProcessGroup

        world = getattr(distributed_c10d, "_world", distributed_c10d)
        known = getattr(world, "pg_map", None) or getattr(world, "_pg_map", {})
        all_of_them = group is None or group is getattr(dist.group, "WORLD", None)
        groups = list(known) if all_of_them else [group]
        result = original(group)
        for each in groups:
            if isinstance(each, ProcessGroup):
                each.shutdown()
        return result

    return destroy_process_group


def _replace(name: str, function: Callable[..., Any]) -> None:
    setattr(distributed_c10d, name, function)
    if hasattr(dist, name):
        setattr(dist, name, function)


def _add_backend(name: str) -> None:
    backend = distributed_c10d.Backend
    if name.upper() in backend._plugins:
        return
    try:
        backend.register_backend(name, create, extended_api=True, devices=["cpu", "cuda"])
    except TypeError:  # 1.13 does not know devices
        backend.register_backend(name, create, extended_api=True)
    _ours.add(name)


def register() -> None:
    """Once per process, at import of farandole.c10d or by the hook of `farandole run`."""
    global _registered
    if _registered or not dist.is_available():
        return
    _registered = True
    replace = os.environ.get("FARANDOLE_DDP_BACKEND") == NAME
    _add_backend(NAME)
    if replace:
        _add_backend("ccl")
    with contextlib.suppress(RuntimeError):  # an earlier copy of this module has done it
        dist.register_rendezvous_handler(_SCHEME, _rendezvous)
    _replace("init_process_group", _wrap_init(distributed_c10d.init_process_group, replace))
    _replace("monitored_barrier", _wrap_monitored_barrier(distributed_c10d.monitored_barrier))
    _replace("destroy_process_group", _wrap_destroy(distributed_c10d.destroy_process_group))
    if replace:
        _replace("new_group", _wrap_new_group(distributed_c10d.new_group))


def register_ccl() -> None:
    """For scripts that import oneCCL's bindings and ask for the backend "ccl"."""
    register()
    _add_backend("ccl")
