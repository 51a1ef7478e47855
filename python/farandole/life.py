"""Beginning and end: joining the job this process was started in, and leaving it."""

from __future__ import annotations

import os
import threading
from ctypes import byref, sizeof
from typing import Callable, Sequence

from . import _abi, leaving, world
from ._library import check, library
from .errors import NotInitialised
from .handles import forked
from .process_sets import ProcessSet, add_process_set, begin_sets, forget_sets


def init(
    timeout: float | None = None,
    process_sets: Sequence[ProcessSet | Sequence[int]] | None = None,
) -> None:
    """Joins the job this process was started in, or makes a job of one rank.

    timeout: seconds until all ranks must be there (default: FARANDOLE_START_TIMEOUT). A second call
    without a shutdown between does nothing.
    """
    if not library().is_initialised():
        _begin(timeout)
    elif not world.is_initialised():  # something else in this process initialised the library
        raise NotInitialised("Farandole was initialised by another part of this process")
    leaving.install(world.size())
    for each in process_sets or ():
        add_process_set(each)


def _begin(timeout: float | None) -> None:
    found = library()
    options = _abi.InitOptions(
        struct_size=sizeof(_abi.InitOptions), timeout_ms=int((timeout or 0) * 1000)
    )
    _interruptibly(lambda: check(found.init(byref(options))))
    identity = world.Identity(
        found.rank(),
        found.size(),
        found.local_rank(),
        found.local_size(),
        found.cross_rank(),
        found.cross_size(),
    )
    world.enter(identity)
    begin_sets(identity.size)


def _interruptibly(call: Callable[[], None]) -> None:
    """Runs a call that may take long on a thread, so that Ctrl-C works meanwhile."""
    # MPI must be started by the main thread; and a job of one rank waits for no other.
    if "FARANDOLE_AGENT" not in os.environ or (
        threading.current_thread() is not threading.main_thread()
    ):
        return call()
    failure: list[BaseException] = []
    done = threading.Event()

    def body() -> None:
        try:
            call()
        except BaseException as error:
            failure.append(error)
        finally:
            done.set()

    threading.Thread(target=body, name="farandole-init", daemon=True).start()
    while not done.wait(0.2):
        pass
    if failure:
        raise failure[0]


def shutdown() -> None:
    """Leaves the job. Operations in flight end as ShutDown. May be repeated."""
    if forked():
        return
    world.leave()
    forget_sets()
    check(library().shutdown())
