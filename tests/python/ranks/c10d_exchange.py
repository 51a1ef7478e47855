"""DDP's buckets are exchanged for shared memory again and again, until somebody ends this rank.

c10d_exchange.py [IDLE]: with IDLE it gives way to every other process on its processor.
"""

from __future__ import annotations

import os
import sys
import warnings

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

warnings.simplefilter("ignore")
torch.set_num_threads(1)
dist.init_process_group("farandole")
RANK = dist.get_rank()


def train() -> None:
    """A model with several buckets, as long as they take to be exchanged."""
    layers = [nn.Linear(160, 160, bias=False) for _ in range(6)]
    model = DistributedDataParallel(nn.Sequential(*layers), bucket_cap_mb=0.1)
    for _ in range(4):
        model.zero_grad()
        model(torch.ones(1, 160)).sum().backward()


train()
if "IDLE" in sys.argv[1:]:
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
print(f"rank {RANK} is process {os.getpid()}", flush=True)
while True:
    train()
