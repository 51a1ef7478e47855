"""Training in which one rank fails: torch_faults.py HOW. Data comes from forked workers."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time

import torch
import torch.utils.data

import farandole.torch as hvd
from farandole import errors

how = sys.argv[1]
signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job ignores it
torch.set_num_threads(1)
hvd.init()
RANK, SIZE = hvd.rank(), hvd.size()
CULPRIT = RANK == SIZE - 1


class Data(torch.utils.data.Dataset):
    def __len__(self):
        return 100000

    def __getitem__(self, index):
        if how == "collective in a worker":
            hvd.allreduce(torch.ones(1))
        assert hvd.rank() == RANK  # this one works in workers
        return torch.full((4,), float(index % 3))


class Deadly(torch.autograd.Function):
    """Ends the process inside backward()."""

    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, grad):
        os.kill(os.getpid(), signal.SIGKILL)
        return grad


model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
optimizer = hvd.DistributedOptimizer(
    torch.optim.SGD(model.parameters(), lr=0.01), named_parameters=model.named_parameters()
)
hvd.broadcast_parameters(model.state_dict(), root_rank=0)


def stay(_: int = 0) -> None:
    """The launcher asks the others to end as soon as it knows: these stay to be told. So do their
    workers: the end of one would raise PyTorch's own exception, wherever the rank is."""
    if how == "killed in backward":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)


stay()
loader = torch.utils.data.DataLoader(Data(), batch_size=2, num_workers=2, worker_init_fn=stay)


def told(error: BaseException) -> None:
    print(f"rank {RANK} was told: {error}", flush=True)


def training_loop() -> None:
    for step, batch in enumerate(loader):
        optimizer.zero_grad()
        output = model(batch)
        if step == 3 and CULPRIT:
            if how == "exception":
                raise KeyError("a bad sample")
            if how == "killed in backward":
                output = Deadly.apply(model[0](batch)).sum() + output.sum()
        output.sum().backward()
        optimizer.step()


if how == "worker that ends":
    # Workers come and go without anybody noticing.
    for _ in range(3):
        for step, batch in enumerate(loader):
            optimizer.zero_grad()
            model(batch).sum().backward()
            optimizer.step()
            if step == 2:
                break
    print("done", flush=True)
elif how == "interrupt":
    if RANK == 0:
        timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        try:
            hvd.allreduce(torch.ones(3), name="never")
        except KeyboardInterrupt:
            print("interrupted", flush=True)
            os._exit(9)
    time.sleep(600)
else:
    try:
        training_loop()
    except errors.RankLost as error:
        told(error)
        raise
