"""Elastic names for PyTorch, for a fixed number of ranks."""

from __future__ import annotations

from ...elastic import HostsUpdatedInterrupt, ObjectState, State, run
from .sampler import ElasticSampler
from .state import (
    ModelStateHandler,
    OptimizerStateHandler,
    SamplerStateHandler,
    StateHandler,
    TorchState,
    get_handler_registry,
    set_handler_registry,
)
