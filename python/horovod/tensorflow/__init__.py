"""horovod.tensorflow: farandole.tensorflow and its modules under the names scripts import."""

from __future__ import annotations

import sys
from typing import Any

import farandole.tensorflow as _farandole
from farandole.tensorflow import *
from farandole.tensorflow import (
    HorovodInternalError,
    _executing_eagerly,
    compression,
    elastic,
    functions,
    mpi_ops,
)
from horovod import __version__

for _name, _module in {
    "compression": compression,
    "elastic": elastic,
    "functions": functions,
    "mpi_ops": mpi_ops,
}.items():
    sys.modules[f"{__name__}.{_name}"] = _module


def __getattr__(name: str) -> Any:
    """What needs Keras is loaded when it is asked for."""
    if name == "keras":
        import importlib

        return importlib.import_module(".keras", __name__)
    return getattr(_farandole, name)
