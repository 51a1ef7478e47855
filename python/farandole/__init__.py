"""Farandole: collective operations for training on many processes.

    import farandole
    farandole.init()
    print(farandole.rank(), farandole.size())

`farandole.numpy` works on arrays, `farandole.torch` on PyTorch's tensors and optimizers. This
module needs neither of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import errors
from .core import (
    DType,
    Handle,
    ReduceOp,
    add_process_set,
    barrier,
    counters,
    cross_rank,
    cross_size,
    get_process_sets,
    init,
    is_homogeneous,
    is_initialised,
    join,
    local_rank,
    local_size,
    rank,
    remove_process_set,
    shutdown,
    size,
    start_timeline,
    stop_timeline,
)
from .errors import Error
from .process_sets import ProcessSet, global_process_set
from .version import __version__

if TYPE_CHECKING:  # see __getattr__
    from .run import run

is_initialized = is_initialised

__all__ = [
    "DType",
    "Error",
    "Handle",
    "ProcessSet",
    "ReduceOp",
    "__version__",
    "add_process_set",
    "barrier",
    "counters",
    "cross_rank",
    "cross_size",
    "errors",
    "get_process_sets",
    "global_process_set",
    "init",
    "is_homogeneous",
    "is_initialised",
    "is_initialized",
    "join",
    "local_rank",
    "local_size",
    "rank",
    "remove_process_set",
    "run",
    "shutdown",
    "size",
    "start_timeline",
    "stop_timeline",
]


def __getattr__(name: str) -> Any:
    """`farandole.run(fn, …)`, which starts a job, is loaded when it is asked for."""
    if name == "run":
        import importlib

        # Importing the module binds the name to the module; the function is what people call.
        globals()["run"] = importlib.import_module(".run", __name__).run
        return globals()["run"]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
