"""torch.distributed with the backends gloo and farandole, side by side.

    farandole run -np 2 python bench/python/torch_backends.py [--rounds 15] [--most 256M]

Both backends live in the same processes and take turns within every round, so that both see the
same machine; the figures are medians over the rounds and their ratio. Absolute times of a shared
machine mean little.
"""

from __future__ import annotations

import argparse
import copy
import statistics
from functools import partial
from typing import Any, Callable, Dict, List, Tuple

import torch
import torch.distributed as dist
from side_by_side import median_difference, say, take_turns, timed
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import farandole.torch

BACKENDS = ("gloo", "farandole")


def size(text: str) -> int:
    units = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
    return int(text[:-1]) * units[text[-1]] if text[-1] in units else int(text)


def show(count: int) -> str:
    for unit, name in ((1 << 20, "MiB"), (1 << 10, "KiB")):
        if count >= unit:
            return f"{count // unit} {name}"
    return f"{count} B"


def sizes(most: int) -> List[int]:
    """4 B to 256 MiB and beyond, and always 1 MiB."""
    return sorted({4 * 8**i for i in range(12)} | {1 << 20, 256 << 20} | {most})


def allreduce(groups: Dict[str, dist.ProcessGroup], most: int, rounds: int) -> None:
    say(f"\nallreduce, float32, {dist.get_world_size()} ranks, medians of {rounds} rounds")
    say(f"{'bytes':>9} {'gloo':>12} {'farandole':>12} {'ratio':>7}")
    for count in sizes(most):
        if count > most:
            break
        tensor = torch.zeros(count // 4)
        repeat = max(1, min(50, (32 << 20) // count))
        calls = {name: partial(dist.all_reduce, tensor, group=groups[name]) for name in BACKENDS}
        for call in calls.values():
            timed(call, 2)
        turns = {name: partial(timed, call, repeat) for name, call in calls.items()}
        times = take_turns(turns, rounds if count < 64 << 20 else max(3, rounds // 3))
        gloo, ours = (statistics.median(times[name]) * 1e6 for name in BACKENDS)
        say(f"{show(count):>9} {gloo:9.1f} µs {ours:9.1f} µs {gloo / ours:6.1f}x")


def models() -> List[Tuple[str, Callable[[], nn.Module], torch.Tensor, int]]:
    def many_layers() -> nn.Module:
        return nn.Sequential(*[each for _ in range(60) for each in (nn.Linear(64, 64), nn.ReLU())])

    found = [("MLP, 60 layers of 64", many_layers, torch.randn(8, 64), 10)]
    try:
        from torchvision.models import resnet50

        found.append(("ResNet-50, 1 x 64²", resnet50, torch.randn(1, 3, 64, 64), 3))
    except ImportError:
        say("no torchvision: ResNet-50 is left out")
    return found


class Ddp:
    """Steps of a model in DistributedDataParallel."""

    def __init__(self, net: nn.Module, group: Any) -> None:
        self.net = DistributedDataParallel(net, process_group=group)

    def step(self, data: torch.Tensor) -> None:
        self.net(data).sum().backward()
        self.net.zero_grad(set_to_none=True)

    def alone(self, data: torch.Tensor) -> None:
        with self.net.no_sync():
            self.step(data)


class Meeting(Ddp):
    """Nothing is exchanged, ranks only meet at the end: what remains is the cost of DDP's own work
    and of waiting for the slower rank."""

    def __init__(self, net: nn.Module, group: Any) -> None:
        super().__init__(net, group)
        token = torch.zeros(1)

        def hook(_, bucket):  # type: ignore[no-untyped-def]  # DDP compares annotations itself
            if bucket.is_last():
                dist.all_reduce(token, group=group)
            future: torch.futures.Future[torch.Tensor] = torch.futures.Future()
            future.set_result(bucket.buffer())
            return future

        self.net.register_comm_hook(None, hook)


class Optimizer:
    """Steps of a plain model whose optimizer reduces the gradients; its own update is left out."""

    def __init__(self, net: nn.Module, _: Any) -> None:
        self.plain = copy.deepcopy(net)
        self.net = net
        self.optimizer = farandole.torch.DistributedOptimizer(
            torch.optim.SGD(net.parameters(), lr=0.0), net.named_parameters()
        )

    def step(self, data: torch.Tensor) -> None:
        self.net(data).sum().backward()
        self.optimizer.synchronize()
        self.optimizer.zero_grad(set_to_none=True)

    def alone(self, data: torch.Tensor) -> None:
        self.plain(data).sum().backward()
        self.plain.zero_grad(set_to_none=True)


KINDS = {
    "DDP, gloo": (Ddp, "gloo"),
    "DDP, farandole": (Ddp, "farandole"),
    "DistributedOptimizer": (Optimizer, "farandole"),
    "DDP, meeting": (Meeting, "farandole"),
}


def training(groups: Dict[str, dist.ProcessGroup], rounds: int) -> None:
    say("\na training step: its time, and what of it is communication (step minus the same step")
    say("without); 'meeting' exchanges nothing: its ranks only meet at the end of each step")
    say(f"{'model':>21} {'by':>21} {'step':>10} {'exposed':>10} {'of gloo':>8}")
    for title, make, data, repeat in models():
        calls = {}
        for name, (kind, group) in KINDS.items():
            torch.manual_seed(0)
            one = kind(make().eval(), groups[group])
            timed(partial(one.step, data), 3)
            # The same step without communication right before it: both see the same machine.
            calls[name, "alone"] = partial(timed, partial(one.alone, data), repeat)
            calls[name, "step"] = partial(timed, partial(one.step, data), repeat)
        times = take_turns(calls, rounds)
        gloo = 0.0
        for name in KINDS:
            step, alone = times[name, "step"], times[name, "alone"]
            exposed = median_difference(step, alone)
            gloo = gloo or exposed
            say(
                f"{title:>21} {name:>21} {statistics.median(step) * 1e3:7.2f} ms "
                f"{exposed * 1e3:7.2f} ms {exposed / gloo:8.2f}"
            )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--most", type=size, default=256 << 20, help="largest allreduce")
    parser.add_argument("--no-training", action="store_true")
    parser.add_argument("--no-allreduce", action="store_true")
    options = parser.parse_args()
    dist.init_process_group("farandole")
    farandole.torch.init()
    torch.set_num_threads(1)
    groups = {name: dist.new_group(backend=name) for name in BACKENDS}
    say(f"PyTorch {torch.__version__}")
    if not options.no_allreduce:
        allreduce(groups, options.most, options.rounds)
    if not options.no_training:
        training(groups, options.rounds)
    dist.destroy_process_group()


main()
