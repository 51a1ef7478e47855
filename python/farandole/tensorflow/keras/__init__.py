"""Farandole for tf.keras: optimizers, callbacks. The functions of horovod.tensorflow.keras."""

from __future__ import annotations

from typing import Any, Sequence

import tensorflow as _tf

from ..._keras import models as _models
from ..._keras.api import *
from ..._keras.api import Compression, __version__
from . import callbacks, elastic


def load_model(
    filepath: Any,
    custom_optimizers: Sequence[Any] | None = None,
    custom_objects: dict[str, Any] | None = None,
    compression: Any = Compression.none,
    legacy_opts: bool = False,
) -> Any:
    """A saved model with its optimizer, which is distributed from then on."""
    return _models.load_model(
        _tf.keras, filepath, custom_optimizers, custom_objects, compression=compression
    )
