"""Under a real torchrun: farandole.torch by itself, or as torch.distributed's backend."""

from __future__ import annotations

import sys

import torch


def by_itself() -> int:
    import farandole.torch as fa

    fa.init()
    tensor = torch.full((1000,), float(fa.rank() + 1))
    total = fa.allreduce(tensor, op=fa.Sum, name="total")
    size = fa.size()
    assert torch.equal(total, torch.full((1000,), size * (size + 1) / 2))
    assert fa.local_rank() == fa.rank() % fa.local_size()
    model = torch.nn.Linear(8, 2)
    fa.broadcast_parameters(model.state_dict(), root_rank=0)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    optimizer = fa.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
    torch.manual_seed(fa.rank())
    for _ in range(3):
        optimizer.zero_grad()
        model(torch.randn(4, 8)).square().mean().backward()
        optimizer.step()
    weights = fa.allgather(model.weight.detach().reshape(1, -1), name="weights")
    assert all(torch.equal(weights[0], each) for each in weights)
    fa.shutdown()
    return size


def as_backend() -> int:
    import torch.distributed as dist

    import farandole.c10d  # noqa: F401

    dist.init_process_group("farandole")
    size: int = dist.get_world_size()
    tensor = torch.full((1000,), float(dist.get_rank() + 1))
    dist.all_reduce(tensor)
    assert torch.equal(tensor, torch.full((1000,), size * (size + 1) / 2))
    torch.manual_seed(dist.get_rank())
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(8, 2))
    model(torch.randn(4, 8)).square().mean().backward()
    gradients = [torch.empty(2, 8) for _ in range(size)]
    dist.all_gather(gradients, model.module.weight.grad)
    assert all(torch.equal(gradients[0], each) for each in gradients)
    dist.destroy_process_group()
    return size


size = as_backend() if sys.argv[1] == "backend" else by_itself()
print(f"torchrun, {sys.argv[1]}: one of {size} ok", flush=True)
