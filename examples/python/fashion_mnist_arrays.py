"""Fashion-MNIST as arrays, from Debian's package dataset-fashion-mnist."""

from __future__ import annotations

from typing import Tuple

import numpy as np
from fashion_mnist_files import IMAGES, LABELS, read


def load(train: bool, samples: int = 60000) -> Tuple[np.ndarray, np.ndarray]:
    """(images between 0 and 1, labels)"""
    content, begin, count = read(train, IMAGES)
    images = np.frombuffer(content, np.uint8, offset=begin).reshape(count, 28, 28, 1)[:samples]
    content, begin, _ = read(train, LABELS)
    labels = np.frombuffer(content, np.uint8, offset=begin).astype("int64")[:samples]
    return images.astype("float32") / 255.0, labels
