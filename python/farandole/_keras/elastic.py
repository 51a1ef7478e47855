"""Elastic names for Keras, for a fixed number of ranks."""

from __future__ import annotations

import functools
from types import SimpleNamespace
from typing import Any

import numpy

from ..elastic import ObjectState
from ..tensorflow.functions import broadcast_variables
from .callbacks import optimizer_variables


class TensorFlowKerasState(ObjectState):
    """A model, its optimizer, and whatever else is given by name."""

    def __init__(
        self, model: Any, optimizer: Any = None, backend: Any = None, **kwargs: Any
    ) -> None:
        self.model = model
        self.optimizer = optimizer if optimizer is not None else getattr(model, "optimizer", None)
        self._kept: list[numpy.ndarray] = []
        super().__init__(**kwargs)
        self._keep()

    def _variables(self) -> list[Any]:
        state = [] if self.optimizer is None else optimizer_variables(self.optimizer)
        return list(self.model.weights) + state

    def _keep(self) -> None:
        self._kept = [numpy.array(each) for each in self._variables()]

    def save(self) -> None:
        self._keep()
        super().save()

    def restore(self) -> None:
        for variable, value in zip(self._variables(), self._kept):
            variable.assign(value)
        super().restore()

    def sync(self) -> None:
        broadcast_variables(self._variables(), root_rank=0)
        self._keep()
        super().sync()


@functools.lru_cache(maxsize=None)
def callbacks(keras: Any) -> SimpleNamespace:
    Callback: Any = keras.callbacks.Callback

    class CommitStateCallback(Callback):
        """Commits the state after a number of batches, and after every epoch."""

        def __init__(self, state: Any, batches_per_commit: int = 1) -> None:
            super().__init__()
            self.state = state
            self.batches_per_commit = batches_per_commit
            self._left = batches_per_commit

        def on_train_begin(self, logs: Any = None) -> None:
            self._left = self.batches_per_commit

        def on_batch_end(self, batch: int, logs: Any = None) -> None:
            self._left -= 1
            if self._left == 0:
                self.state.commit()
                self._left = self.batches_per_commit

        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            self.state.commit()

    class UpdateBatchStateCallback(Callback):
        """Keeps state.batch at the number of batches done in this epoch."""

        def __init__(self, state: Any) -> None:
            super().__init__()
            self.state = state

        def on_batch_end(self, batch: int, logs: Any = None) -> None:
            self.state.batch = batch + 1

        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            self.state.batch = 0

    class UpdateEpochStateCallback(Callback):
        """Keeps state.epoch at the number of epochs done."""

        def __init__(self, state: Any) -> None:
            super().__init__()
            self.state = state
            self._first = getattr(state, "epoch", 0)

        def on_train_begin(self, logs: Any = None) -> None:
            self._first = self.state.epoch

        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            self.state.epoch = self._first + epoch + 1

    return SimpleNamespace(
        CommitStateCallback=CommitStateCallback,
        UpdateBatchStateCallback=UpdateBatchStateCallback,
        UpdateEpochStateCallback=UpdateEpochStateCallback,
    )
