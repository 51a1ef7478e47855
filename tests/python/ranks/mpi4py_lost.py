"""A rank is killed while the others sit inside MPI, where nothing can reach them."""

from __future__ import annotations

import os
import signal
import sys

from mpi4py import MPI

import farandole.numpy as fa

fa.init()
MPI.COMM_WORLD.Barrier()
where = sys.argv[1]
if fa.rank() == 1:
    if where == "finalize":
        # The others are already on their way out.
        import time

        time.sleep(1)
    os.kill(os.getpid(), signal.SIGKILL)
if where == "barrier":
    MPI.COMM_WORLD.Barrier()
fa.shutdown()
