"""Fashion-MNIST with farandole.torch.

    farandole run -np 2 python 01_fashion_mnist_farandole.py --epochs 2
"""

from __future__ import annotations

import argparse
import time

import torch
import torch.nn.functional as F
from fashion_mnist_data import load, scaled

import farandole.torch as fdl


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv1 = torch.nn.Conv2d(1, 16, 3, padding=1)
        self.conv2 = torch.nn.Conv2d(16, 32, 3, padding=1)
        self.fc1 = torch.nn.Linear(32 * 7 * 7, 128)
        self.fc2 = torch.nn.Linear(128, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        return self.fc2(F.relu(self.fc1(x.flatten(1))))


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Trains a small network on Fashion-MNIST.")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch-size", type=int, default=64, help="per rank")
    parser.add_argument("--lr", type=float, default=0.05)
    parser.add_argument("--samples", type=int, default=60000, help="of the training data")
    parser.add_argument("--test-samples", type=int, default=10000)
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


def evaluate(model: Net, images: torch.Tensor, labels: torch.Tensor) -> float:
    """Every rank takes its share of the test data."""
    model.eval()
    mine = slice(fdl.rank(), None, fdl.size())
    correct = torch.zeros((), dtype=torch.int64)
    with torch.no_grad():
        for x, y in zip(images[mine].split(1000), labels[mine].split(1000)):
            correct += (model(scaled(x)).argmax(1) == y).sum()
    return fdl.allreduce(correct, op=fdl.Sum, name="correct").item() / len(labels)


def main() -> None:
    args = options()
    fdl.init()
    torch.manual_seed(args.seed)
    images, labels = load(train=True)
    images, labels = images[: args.samples], labels[: args.samples]
    test_images, test_labels = load(train=False)
    test_images, test_labels = test_images[: args.test_samples], test_labels[: args.test_samples]

    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9)
    optimizer = fdl.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
    fdl.broadcast_parameters(model.state_dict(), root_rank=0)

    for epoch in range(args.epochs):
        model.train()
        start = time.perf_counter()
        # The same order everywhere; each rank takes every size-th image, equally many.
        order = torch.randperm(
            len(images), generator=torch.Generator().manual_seed(args.seed + epoch)
        )
        order = order[: len(images) // fdl.size() * fdl.size()][fdl.rank() :: fdl.size()]
        for batch in order.split(args.batch_size):
            optimizer.zero_grad()
            F.cross_entropy(model(scaled(images[batch])), labels[batch]).backward()
            optimizer.step()
        seconds = time.perf_counter() - start
        accuracy = evaluate(model, test_images, test_labels)
        if fdl.rank() == 0:
            speed = len(order) * fdl.size() / seconds
            print(
                f"epoch {epoch + 1}: accuracy {accuracy:.4f}, {speed:.0f} images/s "
                f"on {fdl.size()} ranks",
                flush=True,
            )


if __name__ == "__main__":
    main()
