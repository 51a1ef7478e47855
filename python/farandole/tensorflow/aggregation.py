"""Gradients of several passes, added up on each rank before one reduction."""

from __future__ import annotations

from typing import Any, Callable, Sequence

import tensorflow as tf


class LocalAggregation:
    """`passes` calls of step() are one update: eager, in tf.function, in graphs of tf.compat.v1."""

    def __init__(self, passes: int, average: bool) -> None:
        if passes < 1:
            raise ValueError("backward_passes_per_step must be at least 1")
        self.passes = passes
        self.average = average
        self.counter: Any = None
        self._sums: list[Any] = []

    def _make(self, grads: Sequence[Any]) -> None:
        def variable(like: Any, dtype: Any, name: str) -> Any:
            if tf.compat.v1.executing_eagerly_outside_functions():
                return tf.Variable(like, trainable=False, dtype=dtype, name=name)
            return tf.compat.v1.Variable(
                like, trainable=False, dtype=dtype, name=name, use_resource=True
            )

        for grad in grads:
            if grad is not None and not grad.shape.is_fully_defined():
                raise ValueError(
                    f"backward_passes_per_step needs gradients of known shapes, one is {grad.shape}"
                )
        shapes = [None if grad is None else (grad.shape, grad.dtype) for grad in grads]
        with tf.init_scope():
            self.counter = variable(0, tf.int32, "farandole_passes")
            self._sums = [
                None
                if each is None
                else variable(tf.zeros(each[0], each[1]), each[1], f"farandole_sum_{i}")
                for i, each in enumerate(shapes)
            ]

    def add(self, grads: Sequence[Any]) -> Any:
        """Adds a pass up; the tensor it returns tells whether the update is due."""
        grads = [
            tf.convert_to_tensor(grad) if isinstance(grad, tf.IndexedSlices) else grad
            for grad in grads
        ]
        if self.counter is None:
            self._make(grads)
        added = [
            total.assign_add(grad) for total, grad in zip(self._sums, grads) if total is not None
        ]
        with tf.control_dependencies([each for each in added if not tf.executing_eagerly()]):
            count = self.counter.assign_add(1, read_value=True)
        return tf.equal(tf.math.floormod(count, self.passes), 0)

    def take(self, due: Any = None) -> list[Any]:
        """The sums (or averages), read after add()."""
        with tf.control_dependencies([] if due is None or tf.executing_eagerly() else [due]):
            sums = [None if total is None else total.read_value() for total in self._sums]
        if self.average:
            sums = [None if s is None else s / tf.cast(self.passes, s.dtype) for s in sums]
        return sums

    def clear(self) -> Any:
        cleared = [total.assign(tf.zeros_like(total)) for total in self._sums if total is not None]
        return tf.group(*cleared) if not tf.executing_eagerly() else None

    def step(self, grads: Sequence[Any], update: Callable[[list[Any]], Any]) -> Any:
        """update(sums) on every passes-th call. All ranks count alike."""
        due = self.add(grads)

        def flush() -> Any:
            sums = self.take(due)
            done = update(sums)
            if tf.executing_eagerly():
                self.clear()
                return tf.constant(True)
            # In a graph of tf.compat.v1 only what leads to the result is run.
            with tf.control_dependencies([] if done is None else [done]):
                cleared = self.clear()
            with tf.control_dependencies([cleared]):
                return tf.constant(True)

        return tf.cond(due, flush, lambda: tf.constant(False))
