"""How many images per second: a model of torchvision on random data, by rank and in total.

    farandole run -np 2 python 04_synthetic_benchmark.py --image-size 64 --batch-size 4
    farandole run -np 2 python 04_synthetic_benchmark.py --model small
"""

from __future__ import annotations

import argparse
import statistics
import time

import torch
import torch.nn.functional as F

import farandole.torch as fdl


def small() -> torch.nn.Module:
    """For PyTorch without torchvision."""
    return torch.nn.Sequential(
        torch.nn.Conv2d(3, 16, 3, stride=2),
        torch.nn.ReLU(),
        torch.nn.Conv2d(16, 32, 3, stride=2),
        torch.nn.ReLU(),
        torch.nn.AdaptiveAvgPool2d(4),
        torch.nn.Flatten(),
        torch.nn.Linear(512, 1000),
    )


def model_of(name: str) -> torch.nn.Module:
    if name == "small":
        return small()
    try:
        import torchvision.models
    except ImportError:
        raise SystemExit(
            f"--model {name} needs torchvision: pip install torchvision, or --model small"
        ) from None
    if not hasattr(torchvision.models, name):
        raise SystemExit(f"torchvision has no model {name}: resnet50, vgg16, mobilenet_v2, …")
    return getattr(torchvision.models, name)()


def main() -> None:
    parser = argparse.ArgumentParser(description="Images per second of a model on random data.")
    parser.add_argument("--model", default="resnet50", help="of torchvision, or small")
    parser.add_argument("--batch-size", type=int, default=8, help="per rank")
    parser.add_argument("--image-size", type=int, default=224)
    parser.add_argument("--warmup", type=int, default=2, help="steps before measuring")
    parser.add_argument("--iterations", type=int, default=5)
    parser.add_argument("--steps", type=int, default=5, help="per iteration")
    parser.add_argument("--fp16-allreduce", action="store_true")
    parser.add_argument("--independent", action="store_true", help="ranks do not communicate")
    args = parser.parse_args()

    fdl.init()
    torch.manual_seed(fdl.rank())
    model = model_of(args.model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    if not args.independent:
        compression = fdl.Compression.fp16 if args.fp16_allreduce else fdl.Compression.none
        optimizer = fdl.DistributedOptimizer(
            optimizer, named_parameters=model.named_parameters(), compression=compression
        )
        fdl.broadcast_parameters(model.state_dict(), root_rank=0)
    images = torch.randn(args.batch_size, 3, args.image_size, args.image_size)
    labels = torch.randint(0, 1000, (args.batch_size,))

    def step() -> None:
        optimizer.zero_grad()
        F.cross_entropy(model(images), labels).backward()
        optimizer.step()

    for _ in range(args.warmup):
        step()
    speeds = []
    for iteration in range(args.iterations):
        fdl.barrier()
        begin = time.perf_counter()
        for _ in range(args.steps):
            step()
        speeds.append(args.batch_size * args.steps / (time.perf_counter() - begin))
        if fdl.rank() == 0:
            print(f"Iter #{iteration}: {speeds[-1]:.1f} img/sec per rank", flush=True)
    mean, spread = statistics.mean(speeds), 1.96 * statistics.pstdev(speeds)
    everybody = fdl.allgather(torch.tensor([[mean, spread]], dtype=torch.float64))
    if fdl.rank() == 0:
        for rank, (each, deviation) in enumerate(everybody.tolist()):
            print(f"Img/sec of rank {rank}: {each:.1f} +-{deviation:.1f}")
        total, deviation = everybody.sum(0).tolist()
        print(f"Total img/sec on {fdl.size()} rank(s): {total:.1f} +-{deviation:.1f}", flush=True)


if __name__ == "__main__":
    main()
