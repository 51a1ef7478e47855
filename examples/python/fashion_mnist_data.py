"""Fashion-MNIST as tensors, from Debian's package dataset-fashion-mnist."""

from __future__ import annotations

import gzip
import os
import struct
from typing import Tuple

import torch

FOLDER = os.environ.get("FASHION_MNIST", "/usr/share/datasets/fashion-mnist")


def _read(name: str, magic: int) -> torch.Tensor:
    path = os.path.join(FOLDER, name)
    if not os.path.exists(path):
        raise SystemExit(
            f"{path} is missing: apt-get install dataset-fashion-mnist, or set FASHION_MNIST to "
            "the folder that has it"
        )
    with gzip.open(path) as file:
        content = bytearray(file.read())
    found, count = struct.unpack(">ii", content[:8])
    if found != magic:
        raise SystemExit(f"{path} is not what it should be: it begins with {found:#x}")
    images = magic == 0x803
    data = torch.frombuffer(content, dtype=torch.uint8, offset=16 if images else 8)
    return data.view(count, 1, 28, 28) if images else data.view(count)


def load(train: bool) -> Tuple[torch.Tensor, torch.Tensor]:
    """(images as bytes, labels)"""
    prefix = "train" if train else "t10k"
    images = _read(f"{prefix}-images-idx3-ubyte.gz", 0x803)
    labels = _read(f"{prefix}-labels-idx1-ubyte.gz", 0x801)
    return images, labels.long()


def scaled(images: torch.Tensor) -> torch.Tensor:
    return (images.float() / 255.0 - 0.286) / 0.353
