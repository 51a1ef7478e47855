"""The smallest job whose ranks meet."""

from __future__ import annotations

import numpy

import farandole
import farandole.numpy as fdl

farandole.init()
total = fdl.allreduce(numpy.ones(4), op=fdl.Sum)
assert (total == farandole.size()).all()
print(f"rank {farandole.rank()} has the total", flush=True)
