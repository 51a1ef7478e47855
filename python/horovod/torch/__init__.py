"""horovod.torch: farandole.torch, with its modules under the names that scripts import."""

from __future__ import annotations

import sys

import farandole.torch as _farandole
from farandole.torch import *
from farandole.torch import (
    HorovodInternalError,
    compression,
    elastic,
    functions,
    mpi_ops,
    optimizer,
    sync_batch_norm,
)
from farandole.torch.elastic import sampler as _sampler
from farandole.torch.elastic import state as _state
from horovod import __version__

for _name, _module in {
    "mpi_ops": mpi_ops,
    "compression": compression,
    "functions": functions,
    "optimizer": optimizer,
    "sync_batch_norm": sync_batch_norm,
    "elastic": elastic,
    "elastic.sampler": _sampler,
    "elastic.state": _state,
}.items():
    sys.modules[f"{__name__}.{_name}"] = _module
