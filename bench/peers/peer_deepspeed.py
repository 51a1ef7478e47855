"""DeepSpeed's CPU shared-memory all-reduce as a benchmark's contender: float32 sum, in place.

Started once per rank by the driver with RANK, WORLD_SIZE, LOCAL_SIZE, FARANDOLE_BENCH_STORE (a file to meet by), and
MASTER_ADDR and MASTER_PORT (which only name DeepSpeed's shared memory here) set.
Speaks the lines described in peer_wire.h.
"""

from __future__ import annotations

import os
import socket
import sys
import time
from pathlib import Path

os.environ.setdefault("DS_ACCELERATOR", "cpu")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402


def build_operation(rank: int, size: int):
    """Builds DeepSpeed's operator in place (once, cached by torch) and returns its in-place all-reduce."""
    from deepspeed.ops.op_builder.cpu.comm import ShareMemCommBuilder

    # One rank compiles; the others then find the finished library.
    if rank != 0:
        dist.barrier()
    library = ShareMemCommBuilder().load(verbose=False)
    if rank == 0:
        dist.barrier()
    library.initialize(size, rank)
    dist.barrier()
    # Everybody has mapped it by now; its name would stay behind in /dev/shm.
    suffix = f"_{os.environ['MASTER_ADDR']}_{os.environ['MASTER_PORT']}_{rank}"
    for name in Path("/dev/shm").glob("deepspeed_allreduce_buffer_*" + suffix):
        name.unlink(missing_ok=True)
    return torch.ops.deepspeed.inference_all_reduce_


def pin(rank: int) -> None:
    cpus = [int(cpu) for cpu in os.environ.get("FARANDOLE_BENCH_CPUS", "").split(",") if cpu]
    if cpus:
        os.sched_setaffinity(0, {cpus[rank % len(cpus)]})


class Peer:
    def __init__(self, rank: int, size: int) -> None:
        self.rank = rank
        self.size = size
        self.all_reduce = build_operation(rank, size)
        self.buffers: dict[int, torch.Tensor] = {}

    def check(self, data: torch.Tensor) -> str | None:
        index = torch.arange(data.numel(), dtype=torch.int64)
        data.copy_((1 + (index + self.rank) % 3).float())
        self.all_reduce(data)
        expected = sum((1 + (index + rank) % 3) for rank in range(self.size)).float()
        return None if torch.equal(data, expected) else "error wrong result"

    def run(self, words: list[str]) -> str:
        work, dtype, nbytes, warmup, iterations, check = (
            words[1], words[2], int(words[5]), int(words[6]), int(words[7]), words[8] == "1")
        if work != "allreduce" or dtype != "float32":
            return "error this peer does float32 allreduce"
        count = max(1, nbytes // 4)
        if count not in self.buffers:
            self.buffers = {count: torch.zeros(count)}
        data = self.buffers[count]
        if check:
            wrong = self.check(data)
            if wrong:
                return wrong
        data.zero_()
        all_reduce = self.all_reduce
        for _ in range(warmup):
            all_reduce(data)
        dist.barrier()
        begin = time.perf_counter()
        for _ in range(iterations):
            all_reduce(data)
        return f"done {(time.perf_counter() - begin) / iterations:.9e}"


def main() -> int:
    name = os.environ.get("FARANDOLE_BENCH_SOCKET")
    if not name:
        print("this program is started by `farandole bench collective --against deepspeed`", file=sys.stderr)
        return 2
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=size,
                            init_method="file://" + os.environ["FARANDOLE_BENCH_STORE"])
    peer = Peer(rank, size)
    pin(rank)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as wire:
        wire.connect("\0" + name)
        wire.sendall(f"hello {rank} {size} -\nready\n".encode())
        for line in wire.makefile("r"):
            wire.sendall((peer.run(line.split()) + "\n").encode())
    return 0


if __name__ == "__main__":
    sys.exit(main())
