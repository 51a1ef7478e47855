"""ddp_backend.py EXPECTED BACKEND...: a script that knows nothing of Farandole."""

from __future__ import annotations

import contextlib
import os
import sys

import torch
import torch.distributed as dist


def listening():
    """Sockets this process listens on (TCP)."""
    mine = set()
    for each in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            mine.add(os.readlink(f"/proc/self/fd/{each}"))
    found = []
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        if not os.path.exists(table):
            continue
        with open(table) as lines:
            for line in list(lines)[1:]:
                words = line.split()
                if words[3] == "0A" and f"socket:[{words[9]}]" in mine:
                    found.append(words[1])
    return found


def work_with(asked, expected):
    if asked == "default":
        dist.init_process_group()
    else:
        dist.init_process_group(asked, init_method="env://")
    assert dist.get_backend() == expected, dist.get_backend()
    tensor = torch.ones(3) * (dist.get_rank() + 1)
    dist.all_reduce(tensor)
    assert tensor.tolist() == [3.0] * 3
    group = dist.new_group([0, 1], backend=None if asked in ("default", "ccl") else asked)
    dist.all_reduce(tensor, group=group)
    assert tensor.tolist() == [6.0] * 3
    net = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 4))
    net(torch.ones(2, 4)).sum().backward()
    if expected != "gloo":
        assert listening() == [], listening()
    dist.destroy_process_group()
    print(f"{asked}: fine")


if "ccl" in sys.argv[1:]:
    import oneccl_bindings_for_pytorch  # noqa: F401
for each in sys.argv[2:]:
    work_with(each, sys.argv[1])
