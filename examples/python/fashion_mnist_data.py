"""Fashion-MNIST as tensors, from Debian's package dataset-fashion-mnist."""

from __future__ import annotations

from typing import Tuple

import torch
from fashion_mnist_files import IMAGES, LABELS, read


def load(train: bool) -> Tuple[torch.Tensor, torch.Tensor]:
    """(images as bytes, labels)"""
    content, begin, count = read(train, IMAGES)
    images = torch.frombuffer(content, dtype=torch.uint8, offset=begin).view(count, 1, 28, 28)
    content, begin, count = read(train, LABELS)
    labels = torch.frombuffer(content, dtype=torch.uint8, offset=begin).view(count)
    return images, labels.long()


def scaled(images: torch.Tensor) -> torch.Tensor:
    return (images.float() / 255.0 - 0.286) / 0.353
