"""Fashion-MNIST as arrays, from Debian's package dataset-fashion-mnist."""

from __future__ import annotations

import gzip
import os
from typing import Tuple

import numpy as np

FOLDER = os.environ.get("FASHION_MNIST", "/usr/share/datasets/fashion-mnist")


def _read(name: str, magic: int) -> np.ndarray:
    path = os.path.join(FOLDER, name)
    if not os.path.exists(path):
        raise SystemExit(
            f"{path} is missing: apt-get install dataset-fashion-mnist, or set FASHION_MNIST to "
            "the folder that has it"
        )
    with gzip.open(path) as file:
        content = file.read()
    found, count = np.frombuffer(content, ">i4", 2)
    if found != magic:
        raise SystemExit(f"{path} is not what it should be: it begins with {found:#x}")
    if magic == 0x801:
        return np.frombuffer(content, np.uint8, offset=8).astype("int64")
    return np.frombuffer(content, np.uint8, offset=16).reshape(count, 28, 28, 1)


def load(train: bool, samples: int = 60000) -> Tuple[np.ndarray, np.ndarray]:
    """(images between 0 and 1, labels)"""
    prefix = "train" if train else "t10k"
    images = _read(f"{prefix}-images-idx3-ubyte.gz", 0x803)[:samples]
    labels = _read(f"{prefix}-labels-idx1-ubyte.gz", 0x801)[:samples]
    return images.astype("float32") / 255.0, labels
