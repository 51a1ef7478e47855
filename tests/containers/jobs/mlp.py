"""Trains a small MLP with Horovod's names, and the same on this rank alone; both must agree.

--seconds stretches the training: steps go on, with a pause between them, until rank 0's clock says so.
"""

from __future__ import annotations

import argparse
import time

import torch

import horovod.torch as hvd

LAYERS = (96, 64, 32, 10)
EXAMPLES = 12  # a step's, of all ranks together: 1, 2, 3 and 4 ranks have equal shares


def model_of(seed: int) -> torch.nn.Sequential:
    torch.manual_seed(seed)
    modules: list[torch.nn.Module] = []
    for inputs, outputs in zip(LAYERS, LAYERS[1:]):
        modules += [torch.nn.Linear(inputs, outputs), torch.nn.Tanh()]
    return torch.nn.Sequential(*modules)


def sgd(model: torch.nn.Module) -> torch.optim.Optimizer:
    return torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)


def step(
    model: torch.nn.Module, optimizer: torch.optim.Optimizer, x: torch.Tensor, y: torch.Tensor
) -> float:
    optimizer.zero_grad()
    loss = torch.nn.functional.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    return float(loss)


def flat(model: torch.nn.Module) -> torch.Tensor:
    return torch.cat([each.detach().flatten() for each in model.parameters()])


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=0.0)
    wish = parser.parse_args()

    torch.set_num_threads(1)
    hvd.init()
    rank, size = hvd.rank(), hvd.size()
    assert EXAMPLES % size == 0

    model = model_of(seed=100 + rank)
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    optimizer = hvd.DistributedOptimizer(sgd(model), named_parameters=model.named_parameters())
    alone = model_of(seed=100)
    its_optimizer = sgd(alone)
    assert torch.equal(flat(model), flat(alone)), "broadcast_parameters: not rank 0's parameters"

    data = torch.Generator().manual_seed(7)
    centres = torch.randn(10, LAYERS[0], generator=data)
    begin = time.monotonic()
    losses = []
    steps = 0
    while True:
        y = torch.randint(0, 10, (EXAMPLES,), generator=data)
        x = centres[y] + 0.3 * torch.randn(EXAMPLES, LAYERS[0], generator=data)
        step(model, optimizer, x[rank::size], y[rank::size])
        losses.append(step(alone, its_optimizer, x, y))
        steps += 1
        more = steps < wish.steps
        if wish.seconds:
            if steps == 3 and rank == 0:
                print("under way", flush=True)
            time.sleep(0.05)
            more = more or time.monotonic() - begin < wish.seconds
            more = bool(hvd.broadcast(torch.tensor([int(more)]), root_rank=0, name="more")[0])
        if not more:
            break

    for other, theirs in enumerate(hvd.allgather(flat(model).unsqueeze(0))):
        assert torch.equal(theirs, flat(model)), f"ranks {rank} and {other} have different parameters"
    distance = float((flat(model) - flat(alone)).abs().max())
    assert distance < 1e-4, f"not what one rank alone has learned: {distance}"
    assert losses[-1] < losses[0] / 2, f"nothing was learned: {losses}"
    print(f"rank {rank} of {size} trained as one alone: {steps} steps, {distance:.1e} apart", flush=True)


main()
