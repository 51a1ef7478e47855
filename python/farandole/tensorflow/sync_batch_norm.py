"""Batch normalisation over the batches of all ranks, for Keras 2 and Keras 3."""

from __future__ import annotations

import functools
from typing import Any

import tensorflow as tf

from ..process_sets import ProcessSet, global_process_set
from .mpi_ops import Sum, _allreduce


def moments(inputs: Any, axes: list[int], keep: bool, process_set: ProcessSet) -> tuple[Any, Any]:
    """Mean and variance over all ranks, in two reductions: exact even far from zero."""
    dtype = inputs.dtype
    x = tf.cast(inputs, tf.float32) if dtype in (tf.float16, tf.bfloat16) else inputs
    total = tf.reduce_sum(x, axes, keepdims=True)
    rows = tf.cast(tf.size(x), x.dtype) / tf.cast(tf.maximum(1, tf.size(total)), x.dtype)
    flat = tf.concat([tf.reshape(total, [-1]), [rows]], 0)
    flat = _allreduce(flat, "SyncBatchNormalization_mean", Sum, process_set=process_set)
    count = tf.stop_gradient(flat[-1])
    mean = tf.reshape(flat[:-1], tf.shape(total)) / count
    squares = tf.reduce_sum(tf.math.squared_difference(x, mean), axes, keepdims=True)
    name = "SyncBatchNormalization_variance"
    variance = _allreduce(squares, name, Sum, process_set=process_set) / count
    if not keep:
        mean, variance = tf.squeeze(mean, axes), tf.squeeze(variance, axes)
    return tf.cast(mean, dtype), tf.cast(variance, dtype)


@functools.lru_cache(maxsize=None)
def layer(keras: Any) -> Any:
    """The class for one Keras."""
    base: Any = keras.layers.BatchNormalization

    class SyncBatchNormalization(base):
        """Like BatchNormalization, with mean and variance of all ranks while training."""

        def __init__(
            self,
            fused: Any = False,
            process_set: ProcessSet = global_process_set,
            **kwargs: Any,
        ) -> None:
            if fused in (True, None):
                raise ValueError("SyncBatchNormalization does not support fused=True")
            if kwargs.pop("renorm", False):
                raise ValueError("SyncBatchNormalization does not support renorm=True")
            if not hasattr(base, "_moments") or hasattr(base, "_fused_can_be_used"):
                kwargs["fused"] = False  # Keras 2
            kwargs.setdefault("name", None)
            super().__init__(**kwargs)
            self._farandole_set = process_set
            self.supports_jit = False

        def _moments(self, inputs: Any, *args: Any, **kwargs: Any) -> tuple[Any, Any]:
            if hasattr(self, "_reduction_axes"):  # Keras 3: (inputs, mask)
                if (args and args[0] is not None) or kwargs.get("mask") is not None:
                    raise ValueError("SyncBatchNormalization does not support masks")
                mean, variance = moments(
                    tf.convert_to_tensor(inputs),
                    list(self._reduction_axes),
                    False,
                    self._farandole_set,
                )
                return mean, variance
            axes = args[0] if args else kwargs["reduction_axes"]
            keep = args[1] if len(args) > 1 else kwargs["keep_dims"]
            return moments(inputs, list(axes), keep, self._farandole_set)

    SyncBatchNormalization.__module__ = __name__
    return SyncBatchNormalization


def __getattr__(name: str) -> Any:
    if name == "SyncBatchNormalization":
        return layer(tf.keras)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
