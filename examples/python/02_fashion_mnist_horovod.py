"""Fashion-MNIST in a script as people have them for Horovod. Nothing in it knows of Farandole.

    farandole run -np 2 python 02_fashion_mnist_horovod.py --epochs 2
    horovodrun -np 2 python 02_fashion_mnist_horovod.py --epochs 2
"""

import argparse

import torch
import torch.nn.functional as F
from fashion_mnist_data import load, scaled
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

import horovod.torch as hvd


def network():
    return torch.nn.Sequential(
        torch.nn.Conv2d(1, 12, 5),
        torch.nn.ReLU(),
        torch.nn.MaxPool2d(2),
        torch.nn.Conv2d(12, 24, 5),
        torch.nn.ReLU(),
        torch.nn.MaxPool2d(2),
        torch.nn.Flatten(),
        torch.nn.Linear(24 * 4 * 4, 64),
        torch.nn.ReLU(),
        torch.nn.Dropout(0.25),
        torch.nn.Linear(64, 10),
    )


def batches(train, samples, batch_size):
    """This rank's share of the data, and what decides about it."""
    images, labels = load(train)
    data = TensorDataset(scaled(images[:samples]), labels[:samples])
    sampler = DistributedSampler(data, num_replicas=hvd.size(), rank=hvd.rank())
    return DataLoader(data, batch_size=batch_size, sampler=sampler), sampler


def test(model, loader):
    model.eval()
    loss = correct = count = 0
    with torch.no_grad():
        for x, y in loader:
            scores = model(x)
            loss += F.cross_entropy(scores, y, reduction="sum").item()
            correct += (scores.argmax(1) == y).sum().item()
            count += len(y)
    sums = hvd.allreduce(torch.tensor([loss, correct, count], dtype=torch.float64), op=hvd.Sum)
    return (sums[0] / sums[2]).item(), (100 * sums[1] / sums[2]).item()


def main():
    parser = argparse.ArgumentParser(description="Fashion-MNIST")
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--lr", type=float, default=0.02)
    parser.add_argument("--samples", type=int, default=60000)
    parser.add_argument("--log-interval", type=int, default=100)
    parser.add_argument("--fp16-allreduce", action="store_true")
    parser.add_argument("--use-adasum", action="store_true")
    args = parser.parse_args()

    hvd.init()
    torch.manual_seed(7)
    torch.set_num_threads(1)
    training, sampler = batches(True, args.samples, args.batch_size)
    testing, _ = batches(False, 10000, 1000)

    model = network()
    # An average over more ranks allows for larger steps; Adasum sees to that itself.
    rate = args.lr if args.use_adasum else args.lr * hvd.size()
    optimizer = torch.optim.SGD(model.parameters(), lr=rate, momentum=0.5)
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    hvd.broadcast_optimizer_state(optimizer, root_rank=0)
    optimizer = hvd.DistributedOptimizer(
        optimizer,
        named_parameters=model.named_parameters(),
        compression=hvd.Compression.fp16 if args.fp16_allreduce else hvd.Compression.none,
        op=hvd.Adasum if args.use_adasum else hvd.Average,
    )

    for epoch in range(1, args.epochs + 1):
        model.train()
        sampler.set_epoch(epoch)
        for step, (x, y) in enumerate(training):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            if step % args.log_interval == 0 and hvd.rank() == 0:
                print(f"epoch {epoch}, step {step} of {len(training)}: loss {loss.item():.4f}")
        loss, accuracy = test(model, testing)
        if hvd.rank() == 0:
            print(f"epoch {epoch}: test loss {loss:.4f}, Accuracy: {accuracy:.2f}%", flush=True)


if __name__ == "__main__":
    main()
