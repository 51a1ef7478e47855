"""Images per second of a small CNN: ranks that train together, and ranks that do not.

    farandole run -np 2 python bench/python/torch_throughput.py [--rounds 15] [--batch 64]

Every way of training takes its turn within every round. 'meeting' ranks exchange nothing and only
meet after every step: what they lose, they lose by waiting for the slower one.
"""

from __future__ import annotations

import argparse
import statistics
import time
from typing import Any, Callable, Dict

import torch
import torch.distributed as dist
from side_by_side import say, take_turns
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import farandole.torch

WAYS = ("independent", "meeting", "DistributedOptimizer", "DDP, farandole", "DDP, gloo")


def small_cnn() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(1, 32, 3),
        nn.ReLU(),
        nn.Conv2d(32, 64, 3),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(9216, 128),
        nn.ReLU(),
        nn.Linear(128, 10),
    )


def trainer(way: str, groups: Dict[str, Any], batch: int) -> Callable[[], None]:
    """A function that makes one step."""
    net = small_cnn()
    token = torch.zeros(1)
    if way.startswith("DDP"):
        net = DistributedDataParallel(net, process_group=groups[way.split(", ")[1]])
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    if way == "DistributedOptimizer":
        optimizer = farandole.torch.DistributedOptimizer(optimizer, net.named_parameters())
    images = torch.randn(batch, 1, 28, 28)
    labels = torch.randint(10, (batch,))

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        nn.functional.cross_entropy(net(images), labels).backward()
        optimizer.step()
        if way == "meeting":
            dist.all_reduce(token, group=groups["farandole"])

    return step


def together(step: Callable[[], None], batch: int, repeat: int) -> Callable[[], float]:
    """Images per second, summed over the ranks."""

    def measure() -> float:
        dist.barrier()
        begin = time.perf_counter()
        for _ in range(repeat):
            step()
        mine = torch.tensor([batch * repeat / (time.perf_counter() - begin)], dtype=torch.float64)
        dist.all_reduce(mine)
        return float(mine)

    return measure


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--steps", type=int, default=8, help="in each turn")
    options = parser.parse_args()
    dist.init_process_group("farandole")
    farandole.torch.init()
    torch.set_num_threads(1)
    groups = {name: dist.new_group(backend=name) for name in ("gloo", "farandole")}
    calls = {}
    for way in WAYS:
        step = trainer(way, groups, options.batch)
        for _ in range(4):
            step()
        calls[way] = together(step, options.batch, options.steps)
    rates = take_turns(calls, options.rounds)
    say(f"PyTorch {torch.__version__}, {dist.get_world_size()} ranks, batch {options.batch} each")
    say(f"{'way':>21} {'images/s':>9} {'of independent':>15} {'of meeting':>11}")
    for way in WAYS:
        shares = [
            statistics.median(a / b for a, b in zip(rates[way], rates[other]))
            for other in ("independent", "meeting")
        ]
        say(f"{way:>21} {statistics.median(rates[way]):9.0f} {shares[0]:15.2f} {shares[1]:11.2f}")
    dist.destroy_process_group()


main()
