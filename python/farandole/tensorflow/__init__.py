"""Farandole for TensorFlow: collective operations on tensors, tapes and optimizers.

    import farandole.tensorflow as fdl
    fdl.init()
    with tf.GradientTape() as tape:
        loss = …
    grads = fdl.DistributedGradientTape(tape).gradient(loss, model.trainable_variables)

Functions and arguments are those of horovod.tensorflow.
"""

from __future__ import annotations

from typing import Any

import tensorflow as _tf

from ..basics import *
from ..errors import Error, OperationFailed
from ..errors import OperationFailed as HorovodInternalError
from ..version import __version__
from . import elastic, mpi_ops
from .collectives import allreduce, grouped_allreduce, grouped_reducescatter, reducescatter
from .compression import Compression
from .functions import (
    BroadcastGlobalVariablesHook,
    allgather_object,
    broadcast_global_variables,
    broadcast_object,
    broadcast_object_fn,
    broadcast_variables,
    check_num_rank_power_of_2,
)
from .mpi_ops import (
    Adasum,
    Average,
    Max,
    Min,
    Product,
    Sum,
    _executing_eagerly,
    allgather,
    alltoall,
    barrier,
    broadcast,
    broadcast_,
    grouped_allgather,
    handle_average_backwards_compatibility,
    join,
    local_rank_op,
    local_size_op,
    process_set_included_op,
    rank_op,
    size_op,
)
from .optimizer import DistributedOptimizer
from .tape import DistributedGradientTape, PartialDistributedGradientTape


def __getattr__(name: str) -> Any:
    """What needs Keras is loaded when it is asked for."""
    if name == "SyncBatchNormalization":
        from .sync_batch_norm import layer

        return layer(_tf.keras)
    if name == "keras":
        import importlib

        return importlib.import_module(".keras", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
