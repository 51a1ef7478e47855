"""Elastic names for Keras, for a fixed number of ranks."""

from __future__ import annotations

import tensorflow as _tf

from ..._keras.elastic import TensorFlowKerasState  # noqa: F401
from ..._keras.elastic import TensorFlowKerasState as KerasState  # noqa: F401
from ..._keras.elastic import callbacks as _callbacks
from ...tensorflow.elastic import run  # noqa: F401

_made = _callbacks(_tf.keras)

CommitStateCallback = _made.CommitStateCallback
UpdateBatchStateCallback = _made.UpdateBatchStateCallback
UpdateEpochStateCallback = _made.UpdateEpochStateCallback
