"""allreduce of sparse tensors: every rank gets the entries of all ranks and adds them up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from .. import errors
from ..dtypes import ReduceOp
from .dtypes import reduce_op
from .work import Done, Work

if TYPE_CHECKING:
    from .process_group import ProcessGroup


def _gather(group: ProcessGroup, tensor: torch.Tensor, counts: list[int]) -> list[torch.Tensor]:
    """The rows of all members; counts[i] is the number of member i."""
    outputs = [torch.empty((count, *tensor.shape[1:]), dtype=tensor.dtype) for count in counts]
    group.allgather([outputs], [tensor.contiguous()]).wait()
    return outputs


def allreduce_sparse(group: ProcessGroup, tensor: torch.Tensor, opts: Any) -> Work:
    """In place, and done when this returns. Only sums are supported."""
    if tensor.layout != torch.sparse_coo:
        raise errors.InvalidArgument(
            f"all_reduce: tensors of layout {tensor.layout} cannot be reduced: see to_dense()"
        )
    if reduce_op(opts) != ReduceOp.SUM:
        raise errors.InvalidArgument("all_reduce of sparse tensors: only ReduceOp.SUM is possible")
    mine = tensor.detach().coalesce()
    count = torch.tensor([mine._nnz()])
    each = [torch.zeros(1, dtype=torch.int64) for _ in range(group.size())]
    group.allgather([each], [count]).wait()
    counts = [int(one) for one in each]
    indices = _gather(group, mine.indices().t(), counts)
    values = _gather(group, mine.values(), counts)
    total = torch.sparse_coo_tensor(
        torch.cat(indices).t(), torch.cat(values), tensor.shape
    ).coalesce()
    with torch.no_grad():
        tensor.copy_(total)
    return Done(group._home, "all_reduce", [tensor])
