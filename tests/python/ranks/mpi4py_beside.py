"""mpi4py and farandole.numpy in one process, under MPI's own mpirun: both compute, both end."""

from __future__ import annotations

import sys

import numpy as np

if sys.argv[1] == "farandole-first":
    import farandole.numpy as fa

    fa.init()
    from mpi4py import MPI
else:
    from mpi4py import MPI

    import farandole.numpy as fa

    fa.init()

world = MPI.COMM_WORLD
assert world.Get_size() == fa.size() > 1
assert world.Get_rank() == fa.rank()

for step in range(50):
    mine = np.full(1000, float(fa.rank() + step), np.float32)
    ours = fa.allreduce(mine, op=fa.Sum, name=f"step{step}")
    theirs = np.empty_like(mine)
    world.Allreduce(mine, theirs, op=MPI.SUM)
    assert np.array_equal(ours, theirs)
gathered = world.allgather(fa.rank())
assert gathered == list(range(fa.size()))
assert fa.broadcast_object({"step": step}, root_rank=0) == {"step": 49}
if sys.argv[1] != "forgets":
    fa.shutdown()
world.Barrier()
print(f"rank {world.Get_rank()}: mpi4py beside farandole: ok")
