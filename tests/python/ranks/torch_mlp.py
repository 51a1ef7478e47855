"""An ordinary training: rank 0's parameters to all, then steps; compared with one rank's."""

from __future__ import annotations

import torch

import horovod.torch as hvd

hvd.init()
torch.set_num_threads(1)
RANK, SIZE = hvd.rank(), hvd.size()


def made(seed: int) -> tuple[torch.nn.Module, torch.optim.Optimizer]:
    torch.manual_seed(seed)
    sizes = (784, 512, 256, 10)
    layers: list[torch.nn.Module] = []
    for inputs, outputs in zip(sizes, sizes[1:]):
        layers += [torch.nn.Linear(inputs, outputs), torch.nn.ReLU()]
    model = torch.nn.Sequential(*layers[:-1])
    return model, torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)


def step(model: torch.nn.Module, optimizer: torch.optim.Optimizer, examples: torch.Tensor) -> None:
    optimizer.zero_grad()
    model(examples).square().mean().backward()
    optimizer.step()


model, optimizer = made(seed=RANK)
distributed = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
hvd.broadcast_parameters(model.state_dict(), root_rank=0)
hvd.broadcast_optimizer_state(distributed, root_rank=0)
alone, its_optimizer = made(seed=0)
for got, wanted in zip(model.parameters(), alone.parameters()):
    assert torch.equal(got, wanted), "broadcast_parameters"

generator = torch.Generator().manual_seed(5)
for _ in range(6):
    examples = torch.randn(8 * SIZE, 784, generator=generator)
    step(model, distributed, examples[RANK::SIZE])
    step(alone, its_optimizer, examples)

flat = torch.cat([each.detach().flatten() for each in model.parameters()])
for other in hvd.allgather(flat.unsqueeze(0)):
    assert torch.equal(other, flat), "ranks have different parameters"
expected = torch.cat([each.detach().flatten() for each in alone.parameters()])
assert torch.allclose(flat, expected, rtol=1e-3, atol=1e-5), (flat - expected).abs().max()
assert not torch.equal(expected, torch.cat([each.flatten() for each in made(0)[0].parameters()]))
print("trained as one rank alone", flush=True)
