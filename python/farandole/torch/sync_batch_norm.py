"""Batch normalisation over the batches of all ranks, on any device."""

from __future__ import annotations

from typing import Any

import torch
from torch.nn.modules.batchnorm import _BatchNorm

from ..process_sets import ProcessSet, global_process_set
from . import mpi_ops


class SyncBatchNorm(_BatchNorm):
    """Like torch.nn.BatchNorm*d, with mean and variance of all ranks while training."""

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: Any = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        process_set: ProcessSet = global_process_set,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats)
        self.process_set = process_set

    def _check_input_dim(self, input: torch.Tensor) -> None:
        if input.dim() < 2:
            raise ValueError(f"at least 2 dimensions are needed, there are {input.dim()}")

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        self._check_input_dim(input)
        if not self.training:
            # Ranks may evaluate on their own: no rank waits for another.
            return torch.nn.functional.batch_norm(
                input,
                self.running_mean,
                self.running_var,
                self.weight,
                self.bias,
                self.running_mean is None,
                0.0,
                self.eps,
            )
        share = 0.0
        running = self.track_running_stats
        if running and self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
            share = (
                1.0 / float(self.num_batches_tracked) if self.momentum is None else self.momentum
            )
        output, mean, variance, count = _Normalise.apply(
            input, self.weight, self.bias, self.eps, self.process_set
        )
        if running and self.running_mean is not None:
            with torch.no_grad():
                unbiased = variance * (count / (count - 1).clamp_min(1))
                self.running_mean.mul_(1 - share).add_(
                    mean.to(self.running_mean.dtype), alpha=share
                )
                self.running_var.mul_(1 - share).add_(
                    unbiased.to(self.running_var.dtype), alpha=share
                )
        return output


def _exact(tensor: torch.Tensor) -> torch.Tensor:
    """16-bit floats are too narrow for sums."""
    return tensor.float() if tensor.dtype in (torch.float16, torch.bfloat16) else tensor


class _Normalise(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, input: Any, weight: Any, bias: Any, eps: Any, process_set: Any) -> Any:
        x = _exact(input)
        axes = [0, *range(2, x.dim())]
        along = [1, -1] + [1] * (x.dim() - 2)
        rows = x.numel() // x.size(1) if x.size(1) else 0
        if rows:
            mean = x.mean(axes)
            variance = (x - mean.view(along)).square().mean(axes)
        else:
            mean = variance = x.new_zeros(x.size(1))
        mine = torch.cat([mean, variance, mean.new_full((1,), float(rows))])
        every = mpi_ops.gather_and_wait(mine.unsqueeze(0), None, process_set)
        features = x.size(1)
        counts = every[:, -1:]
        count = counts.sum()
        means = every[:, :features]
        mean = (means * counts).sum(0) / count
        variance = ((every[:, features:-1] + (means - mean).square()) * counts).sum(0) / count
        inverse = (variance + eps).rsqrt()
        normal = (x - mean.view(along)) * inverse.view(along)
        output = normal
        if weight is not None:
            output = output * _exact(weight).view(along)
        if bias is not None:
            output = output + _exact(bias).view(along)
        ctx.save_for_backward(normal, inverse, weight, count)
        ctx.rest = (axes, along, process_set)
        ctx.mark_non_differentiable(mean, variance, count)
        return output.to(input.dtype), mean, variance, count

    @staticmethod
    def backward(ctx: Any, grad: Any, *_: Any) -> Any:
        normal, inverse, weight, count = ctx.saved_tensors
        axes, along, process_set = ctx.rest
        g = _exact(grad)
        sum_grad = g.sum(axes)
        sum_product = (g * normal).sum(axes)
        grad_input = None
        if ctx.needs_input_grad[0]:
            sums = torch.stack([sum_grad, sum_product])
            total = mpi_ops.reduce_and_wait(sums, True, None, mpi_ops.Sum, 1.0, 1.0, process_set)
            scale = inverse if weight is None else inverse * _exact(weight)
            rest = (total[0] / count).view(along) + normal * (total[1] / count).view(along)
            grad_input = ((g - rest) * scale.view(along)).to(grad.dtype)
        grad_weight = grad_bias = None
        if weight is not None and ctx.needs_input_grad[1]:
            grad_weight = sum_product.to(weight.dtype)
        if ctx.needs_input_grad[2]:
            grad_bias = sum_grad.to(grad.dtype if weight is None else weight.dtype)
        return grad_input, grad_weight, grad_bias, None, None
