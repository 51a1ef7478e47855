"""Sums arrays that are larger than a container's /dev/shm: in ordinary and in shared memory."""

from __future__ import annotations

import os

import numpy

import farandole
import farandole.numpy as fdl

farandole.init()
rank, size = farandole.rank(), farandole.size()
space = os.statvfs("/dev/shm")
elements = 2 * space.f_blocks * space.f_frsize // 4
for array in (numpy.empty(elements, numpy.float32), fdl.shared(elements)):
    array[:] = rank + 1
    fdl.allreduce_(array, op=fdl.Sum)
    assert (array == size * (size + 1) / 2).all()
print(f"summed {array.nbytes >> 20} MiB with a /dev/shm of {space.f_blocks * space.f_frsize >> 20} MiB", flush=True)
