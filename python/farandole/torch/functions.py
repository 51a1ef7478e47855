"""Equal parameters, optimizer state and objects on all ranks."""

from __future__ import annotations

from typing import Any, Dict, Iterable, Tuple, Union

import torch

from .. import core, objects
from ..process_sets import ProcessSet, global_process_set
from . import mpi_ops

Parameters = Union[Dict[str, Any], Iterable[Tuple[str, Any]]]


def broadcast_parameters(
    params: Parameters, root_rank: int, process_set: ProcessSet = global_process_set
) -> None:
    """root_rank's values for a model.state_dict() or model.named_parameters(), in place."""
    if isinstance(params, dict):
        pairs = sorted(params.items())
    elif isinstance(params, torch.Tensor) or not hasattr(params, "__iter__"):
        raise ValueError(f"a state_dict() or named_parameters() is needed, not {type(params)}")
    else:
        pairs = [
            pair if isinstance(pair, tuple) else (f"parameter.{i}", pair)
            for i, pair in enumerate(params)
        ]
    handles = []
    seen = set()
    for name, value in pairs:
        if not isinstance(value, torch.Tensor) or name in seen:
            continue
        seen.add(name)
        handles.append(
            mpi_ops.broadcast_async_(value.detach(), root_rank, f"parameter.{name}", process_set)
        )
    for handle in handles:
        handle.wait()


class _Place:
    """Where a tensor was in a structure that travels without it."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self.dtype = tensor.dtype
        self.shape = tuple(tensor.shape)


def _strip(value: Any, tensors: list[torch.Tensor]) -> Any:
    """The structure with places instead of tensors, which are collected."""
    if isinstance(value, torch.Tensor) and value.layout == torch.strided:
        tensors.append(value)
        return _Place(value)
    if isinstance(value, dict):
        return {key: _strip(each, tensors) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_strip(each, tensors) for each in value)
    return value


def _fill(value: Any, tensors: list[torch.Tensor]) -> Any:
    """The structure with empty tensors in their places."""
    if isinstance(value, _Place):
        tensors.append(torch.empty(value.shape, dtype=value.dtype))
        return tensors[-1]
    if isinstance(value, dict):
        return {key: _fill(each, tensors) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_fill(each, tensors) for each in value)
    return value


def broadcast_optimizer_state(
    optimizer: torch.optim.Optimizer,
    root_rank: int,
    model: torch.nn.Module | None = None,
    process_set: ProcessSet = global_process_set,
) -> None:
    """root_rank's state of an optimizer (moments, learning rates, counters) on all ranks."""
    root = core.rank() == root_rank
    tensors: list[torch.Tensor] = []
    state = _strip(optimizer.state_dict(), tensors) if root else None
    state = objects.broadcast_object(state, root_rank, "optimizer.state", process_set)
    if not root:
        state = _fill(state, tensors)
    handles = [
        mpi_ops.broadcast_async_(tensor.detach(), root_rank, f"optimizer.state.{i}", process_set)
        for i, tensor in enumerate(tensors)
    ]
    for handle in handles:
        handle.wait()
    if not root:
        optimizer.load_state_dict(state)


def broadcast_object(
    obj: Any,
    root_rank: int = 0,
    name: str | None = None,
    process_set: ProcessSet = global_process_set,
) -> Any:
    """root_rank's object on all ranks; it must be picklable."""
    return objects.broadcast_object(obj, root_rank, name, process_set)


def allgather_object(
    obj: Any, name: str | None = None, process_set: ProcessSet = global_process_set
) -> list[Any]:
    """Every rank's object, in the order of ranks."""
    return objects.allgather_object(obj, name, process_set)
