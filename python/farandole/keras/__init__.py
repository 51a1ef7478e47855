"""Farandole for the package keras, on TensorFlow. The functions of horovod.keras."""

from __future__ import annotations

from typing import Any, Dict, Optional, Sequence

import keras as _keras_package

from .._keras import models as _models
from .._keras.optimizers import distribute
from ..basics import *  # noqa: F401,F403
from ..errors import OperationFailed as HorovodInternalError
from ..process_sets import ProcessSet, global_process_set
from ..tensorflow import collectives as _collectives
from ..tensorflow import functions as _functions
from ..tensorflow import mpi_ops as _mpi_ops
from ..tensorflow.compression import Compression
from ..tensorflow.functions import allgather_object, broadcast_object, broadcast_variables
from ..tensorflow.mpi_ops import Adasum, Average, Max, Min, Product, Sum
from ..tensorflow.tape import variables_of as _variables_of
from ..version import __version__
from . import callbacks, elastic


def DistributedOptimizer(
    optimizer: Any,
    name: Optional[str] = None,
    device_dense: str = "",
    device_sparse: str = "",
    compression: Any = Compression.none,
    sparse_as_dense: bool = False,
    gradient_predivide_factor: float = 1.0,
    op: int = Average,
    backward_passes_per_step: int = 1,
    average_aggregated_gradients: bool = False,
    num_groups: int = 0,
    groups: Any = None,
    process_set: ProcessSet = global_process_set,
    scale_local_gradients: bool = True,
) -> Any:
    """The optimizer, with gradients of all ranks."""
    return distribute(
        optimizer,
        name,
        device_dense,
        device_sparse,
        compression,
        sparse_as_dense,
        gradient_predivide_factor,
        op,
        backward_passes_per_step,
        average_aggregated_gradients,
        num_groups,
        groups,
        process_set,
        scale_local_gradients,
    )


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
    name: Optional[str] = None,
    average: Optional[bool] = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    op: Optional[int] = None,
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


def allgather(value: Any, name: Optional[str] = None) -> Any:
    return _result(_mpi_ops.allgather(value, name))


def broadcast(value: Any, root_rank: int, name: Optional[str] = None) -> Any:
    return _result(_mpi_ops.broadcast(value, root_rank, name))


def reducescatter(value: Any, name: Optional[str] = None, op: int = Average) -> Any:
    return _result(_collectives.reducescatter(value, name=name, op=op))


def load_model(
    filepath: Any,
    custom_optimizers: Optional[Sequence[Any]] = None,
    custom_objects: Optional[Dict[str, Any]] = None,
    compression: Any = Compression.none,
    legacy_opts: bool = False,
) -> Any:
    """A saved model with its optimizer, which is distributed from then on."""
    return _models.load_model(
        _keras_package, filepath, custom_optimizers, custom_objects, compression=compression
    )
