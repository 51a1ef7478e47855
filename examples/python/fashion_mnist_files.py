"""The files of Debian's package dataset-fashion-mnist."""

from __future__ import annotations

import gzip
import os
import struct
from typing import Tuple

FOLDER = os.environ.get("FASHION_MNIST", "/usr/share/datasets/fashion-mnist")
IMAGES = 0x803
LABELS = 0x801


def read(train: bool, kind: int) -> Tuple[bytearray, int, int]:
    """(a whole file, where its data begin, how many images or labels they are)"""
    name = "images-idx3-ubyte.gz" if kind == IMAGES else "labels-idx1-ubyte.gz"
    path = os.path.join(FOLDER, ("train-" if train else "t10k-") + name)
    if not os.path.exists(path):
        raise SystemExit(
            f"{path} is missing: apt-get install dataset-fashion-mnist, or set FASHION_MNIST to "
            "the folder that has it"
        )
    with gzip.open(path) as file:
        content = bytearray(file.read())
    found, count = struct.unpack(">ii", content[:8])
    if found != kind:
        raise SystemExit(f"{path} is not what it should be: it begins with {found:#x}")
    return content, 16 if kind == IMAGES else 8, count
