"""Who this rank is, before init(), from the environment of whatever started it."""

from __future__ import annotations

import os

_FAMILIES = (
    ("FARANDOLE_RANK", "FARANDOLE_SIZE"),
    ("HOROVOD_RANK", "HOROVOD_SIZE"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("PMI_RANK", "PMI_SIZE"),
    ("RANK", "WORLD_SIZE"),
)


def get_env_rank_and_size() -> tuple[int, int]:
    """(0, 1) if nothing says otherwise."""
    for rank, size in _FAMILIES:
        if rank in os.environ and size in os.environ:
            return int(os.environ[rank]), int(os.environ[size])
    return 0, 1
