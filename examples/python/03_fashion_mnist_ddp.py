"""Fashion-MNIST with torch.distributed and DistributedDataParallel; it runs under torchrun as well.

    farandole run -np 2 python 03_fashion_mnist_ddp.py --save-model             # PyTorch's gloo
    farandole run -np 2 --ddp-backend farandole python 03_fashion_mnist_ddp.py  # ours instead
    farandole run -np 2 python 03_fashion_mnist_ddp.py --backend farandole      # ours, by name
    ipexrun --distributed --nproc_per_node=2 03_fashion_mnist_ddp.py --no-cuda --save-model
"""

import argparse

import torch
import torch.distributed as dist
import torch.nn.functional as F
from fashion_mnist_data import load, scaled
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


class Classifier(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.features = torch.nn.Sequential(
            torch.nn.Conv2d(1, 20, 5),
            torch.nn.ReLU(),
            torch.nn.MaxPool2d(2),
            torch.nn.Conv2d(20, 50, 5),
            torch.nn.ReLU(),
            torch.nn.MaxPool2d(2),
        )
        self.decision = torch.nn.Sequential(
            torch.nn.Linear(50 * 4 * 4, 128), torch.nn.ReLU(), torch.nn.Linear(128, 10)
        )

    def forward(self, x):
        return self.decision(self.features(x).flatten(1))


def train(args, model, loader, sampler, optimizer, epoch):
    model.train()
    sampler.set_epoch(epoch)
    for step, (x, y) in enumerate(loader):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        if step % args.log_interval == 0 and dist.get_rank() == 0:
            seen = step * len(x) * dist.get_world_size()
            percent = 100.0 * step / len(loader)
            print(
                f"Train Epoch: {epoch} [{seen}/{len(loader.dataset)} ({percent:.0f}%)]"
                f"\tloss={loss.item():.4f}",
                flush=True,
            )


def test(model, loader):
    """Every rank looks at its part; hits and images of all ranks are added up."""
    model.eval()
    counted = torch.zeros(2)
    with torch.no_grad():
        for x, y in loader:
            counted += torch.tensor([(model(x).argmax(1) == y).sum().item(), len(y)])
    dist.all_reduce(counted)
    if dist.get_rank() == 0:
        print(f"\naccuracy={counted[0] / counted[1]:.4f}\n", flush=True)


def main():
    parser = argparse.ArgumentParser(description="Fashion-MNIST with DistributedDataParallel")
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--test-batch-size", type=int, default=1000)
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--lr", type=float, default=0.01)
    parser.add_argument("--momentum", type=float, default=0.5)
    parser.add_argument("--samples", type=int, default=60000)
    parser.add_argument("--log-interval", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--backend", default="gloo", help="gloo, farandole, …")
    parser.add_argument("--no-cuda", action="store_true", help="accepted: it only uses CPUs")
    parser.add_argument("--save-model", action="store_true", help="rank 0 writes mnist_cnn.pt")
    args = parser.parse_args()

    torch.manual_seed(args.seed)
    dist.init_process_group(args.backend)
    print(f"Using distributed PyTorch with {dist.get_backend()} backend")
    print(f"World Size: {dist.get_world_size()}. Rank: {dist.get_rank()}", flush=True)

    images, labels = load(train=True)
    training = TensorDataset(scaled(images[: args.samples]), labels[: args.samples])
    sampler = DistributedSampler(training)
    loader = DataLoader(training, batch_size=args.batch_size, sampler=sampler)
    images, labels = load(train=False)
    testing = TensorDataset(scaled(images), labels)
    test_loader = DataLoader(
        testing, batch_size=args.test_batch_size, sampler=DistributedSampler(testing, shuffle=False)
    )

    model = DistributedDataParallel(Classifier())
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=args.momentum)
    for epoch in range(1, args.epochs + 1):
        train(args, model, loader, sampler, optimizer, epoch)
        test(model, test_loader)
    if args.save_model and dist.get_rank() == 0:
        torch.save(model.module.state_dict(), "mnist_cnn.pt")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
