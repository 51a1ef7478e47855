"""Farandole for PyTorch: collective operations on tensors, and DistributedOptimizer.

    import farandole.torch as fdl
    fdl.init()
    optimizer = fdl.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
    fdl.broadcast_parameters(model.state_dict(), root_rank=0)

Functions and arguments are those of horovod.torch.
"""

from __future__ import annotations

import torch as _torch

from ..basics import *
from ..errors import Error, OperationFailed
from ..errors import OperationFailed as HorovodInternalError
from ..version import __version__
from . import elastic
from .compression import Compression
from .functions import (
    allgather_object,
    broadcast_object,
    broadcast_optimizer_state,
    broadcast_parameters,
)
from .mpi_ops import (
    Adasum,
    Average,
    Max,
    Min,
    Product,
    Sum,
    allgather,
    allgather_async,
    allreduce,
    allreduce_,
    allreduce_async,
    allreduce_async_,
    alltoall,
    alltoall_async,
    barrier,
    broadcast,
    broadcast_,
    broadcast_async,
    broadcast_async_,
    grouped_allgather,
    grouped_allgather_async,
    grouped_allreduce,
    grouped_allreduce_,
    grouped_allreduce_async,
    grouped_allreduce_async_,
    grouped_reducescatter,
    grouped_reducescatter_async,
    join,
    poll,
    reducescatter,
    reducescatter_async,
    sparse_allreduce_async,
    synchronize,
)
from .optimizer import DistributedOptimizer
from .sync_batch_norm import SyncBatchNorm
