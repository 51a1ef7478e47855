"""The functions of farandole.keras and farandole.tensorflow.keras, which both have."""

from __future__ import annotations

from typing import Any

from ..basics import *  # noqa: F403
from ..errors import OperationFailed as HorovodInternalError  # noqa: F401
from ..process_sets import ProcessSet, global_process_set  # noqa: F401
from ..tensorflow import collectives as _collectives
from ..tensorflow import functions as _functions
from ..tensorflow import mpi_ops as _mpi_ops
from ..tensorflow.compression import Compression
from ..tensorflow.functions import (  # noqa: F401
    allgather_object,
    broadcast_object,
    broadcast_variables,
)
from ..tensorflow.mpi_ops import Adasum, Average, Max, Min, Product, Sum  # noqa: F401
from ..tensorflow.tape import variables_of as _variables_of
from ..version import __version__  # noqa: F401
from .optimizers import distribute as DistributedOptimizer


def PartialDistributedOptimizer(
    optimizer: Any, *args: Any, local_layers: Any = None, **kwargs: Any
) -> Any:
    """The gradients of local_layers stay on their rank; the layers must have been built."""
    made = DistributedOptimizer(optimizer, *args, **kwargs)
    for variable in _variables_of(local_layers):
        made.register_local_var(variable)
    return made


def _result(tensor: Any) -> Any:
    """A value, where there is one already."""
    return tensor.numpy() if hasattr(tensor, "numpy") else tensor


def broadcast_global_variables(root_rank: int) -> Any:
    """For graphs of tf.compat.v1; else see callbacks.BroadcastGlobalVariablesCallback."""
    return _functions.broadcast_global_variables(root_rank)


def allreduce(
    value: Any,
    name: str | None = None,
    average: bool | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    op: int | None = None,
    compression: Any = Compression.none,
) -> Any:
    return _result(
        _collectives.allreduce(
            value,
            average,
            compression=compression,
            op=op,
            prescale_factor=prescale_factor,
            postscale_factor=postscale_factor,
            name=name,
        )
    )


def allgather(value: Any, name: str | None = None) -> Any:
    return _result(_mpi_ops.allgather(value, name))


def broadcast(value: Any, root_rank: int, name: str | None = None) -> Any:
    return _result(_mpi_ops.broadcast(value, root_rank, name))


def reducescatter(value: Any, name: str | None = None, op: int = Average) -> Any:
    return _result(_collectives.reducescatter(value, name=name, op=op))
