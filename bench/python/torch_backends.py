"""torch.distributed with the backends gloo and farandole, side by side.

    farandole run -np 2 python bench/python/torch_backends.py [--rounds 15] [--most 256M] [--no-ddp]

Both backends live in the same processes and take turns within every round, so that both see the
same machine; the figures are medians over the rounds and their ratio. Absolute times of a shared
machine mean little.
"""

from __future__ import annotations

import argparse
import statistics
import time
from typing import Callable, Dict, List, Tuple

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

BACKENDS = ("gloo", "farandole")


def size(text: str) -> int:
    units = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
    return int(text[:-1]) * units[text[-1]] if text[-1] in units else int(text)


def show(count: int) -> str:
    for unit, name in ((1 << 20, "MiB"), (1 << 10, "KiB")):
        if count >= unit:
            return f"{count // unit} {name}"
    return f"{count} B"


def timed(call: Callable[[], object], repeat: int) -> float:
    """Seconds per call, all ranks starting together."""
    dist.barrier()
    begin = time.perf_counter()
    for _ in range(repeat):
        call()
    return (time.perf_counter() - begin) / repeat


def say(text: str) -> None:
    if dist.get_rank() == 0:
        print(text, flush=True)


def allreduce(groups: Dict[str, dist.ProcessGroup], most: int, rounds: int) -> None:
    say(f"\nallreduce, float32, {dist.get_world_size()} ranks, medians of {rounds} rounds")
    say(f"{'bytes':>9} {'gloo':>12} {'farandole':>12} {'ratio':>7}")
    count = 4
    while count <= most:
        tensor = torch.zeros(count // 4)
        repeat = max(1, min(50, (4 << 20) // count))
        times: Dict[str, List[float]] = {name: [] for name in BACKENDS}
        for group in groups.values():
            timed(lambda: dist.all_reduce(tensor, group=group), 2)
        for i in range(rounds):
            for name in BACKENDS if i % 2 else BACKENDS[::-1]:
                group = groups[name]
                times[name].append(timed(lambda: dist.all_reduce(tensor, group=group), repeat))
        gloo, ours = (statistics.median(times[name]) * 1e6 for name in BACKENDS)
        say(f"{show(count):>9} {gloo:9.1f} µs {ours:9.1f} µs {gloo / ours:6.1f}x")
        count *= 8


def models() -> List[Tuple[str, Callable[[], nn.Module], torch.Tensor]]:
    def many_layers() -> nn.Module:
        return nn.Sequential(*[each for _ in range(60) for each in (nn.Linear(64, 64), nn.ReLU())])

    found = [("MLP, 60 layers of 64", many_layers, torch.randn(8, 64))]
    try:
        from torchvision.models import resnet50

        found.append(("ResNet-50, 1 x 64²", resnet50, torch.randn(1, 3, 64, 64)))
    except ImportError:
        say("no torchvision: ResNet-50 is left out")
    return found


def step(net: DistributedDataParallel, data: torch.Tensor, reduce: bool) -> None:
    if reduce:
        net(data).sum().backward()
    else:
        with net.no_sync():
            net(data).sum().backward()
    net.zero_grad(set_to_none=True)


def ddp(groups: Dict[str, dist.ProcessGroup], rounds: int) -> None:
    say("\nDDP step: time, and what of it is communication (step minus the same step in no_sync)")
    say(f"{'model':>22} {'backend':>10} {'step':>10} {'exposed':>10}")
    for title, make, data in models():
        torch.manual_seed(0)
        nets = {
            name: DistributedDataParallel(make().eval(), process_group=group)
            for name, group in groups.items()
        }
        repeat = 3
        for net in nets.values():
            timed(lambda: step(net, data, True), 3)
        times: Dict[str, List[float]] = {name: [] for name in BACKENDS}
        alone: Dict[str, List[float]] = {name: [] for name in BACKENDS}
        for i in range(rounds):
            for name in BACKENDS if i % 2 else BACKENDS[::-1]:
                alone[name].append(timed(lambda: step(nets[name], data, False), repeat))
                times[name].append(timed(lambda: step(nets[name], data, True), repeat))
        exposed = {}
        for name in BACKENDS:
            exposed[name] = statistics.median(
                with_it - without for with_it, without in zip(times[name], alone[name])
            )
            say(
                f"{title:>22} {name:>10} {statistics.median(times[name]) * 1e3:7.2f} ms "
                f"{exposed[name] * 1e3:7.2f} ms"
            )
        if exposed["gloo"] > 0:
            say(f"{'':>22} exposed, farandole / gloo: {exposed['farandole'] / exposed['gloo']:.2f}")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--most", type=size, default=256 << 20, help="largest allreduce")
    parser.add_argument("--no-ddp", action="store_true")
    parser.add_argument("--no-allreduce", action="store_true")
    options = parser.parse_args()
    dist.init_process_group("farandole")
    torch.set_num_threads(1)
    groups = {name: dist.new_group(backend=name) for name in BACKENDS}
    say(f"PyTorch {torch.__version__}")
    if not options.no_allreduce:
        allreduce(groups, options.most, options.rounds)
    if not options.no_ddp:
        ddp(groups, options.rounds)
    dist.destroy_process_group()


main()
