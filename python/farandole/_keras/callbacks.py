"""Callbacks, made for one Keras: `callbacks(keras)` has the classes."""

from __future__ import annotations

import functools
from types import SimpleNamespace
from typing import Any, Callable

import numpy

from .. import core
from .. import numpy as arrays
from ..tensorflow.functions import broadcast_variables


def optimizer_variables(optimizer: Any) -> list[Any]:
    """A method in some generations of Keras, a property in others."""
    found = optimizer.variables
    return list(found() if callable(found) else found)


def weights_and_state(model: Any) -> list[Any]:
    """The variables that must be the same on all ranks: all but the seeds of random layers."""
    optimizer = getattr(model, "optimizer", None)
    return list(model.weights) + ([] if optimizer is None else optimizer_variables(optimizer))


@functools.lru_cache(maxsize=None)
def callbacks(keras: Any) -> SimpleNamespace:
    Callback: Any = keras.callbacks.Callback

    class BroadcastGlobalVariablesCallback(Callback):
        """root_rank's weights and optimizer state everywhere, after the first batch.

        Not before it: only then all variables exist, whether a checkpoint was loaded or not.
        """

        def __init__(
            self, root_rank: int, device: str = "", local_variables: list[Any] | None = None
        ) -> None:
            super().__init__()
            self.root_rank = root_rank
            self.device = device
            self._local = [id(each) for each in local_variables or ()]
            self.broadcast_done = False

        def register_local_var(self, variable: Any) -> None:
            """This variable keeps its own value on every rank."""
            self._local.append(id(variable))

        def on_batch_end(self, batch: int, logs: Any = None) -> None:
            if self.broadcast_done:
                return
            variables = [
                each for each in weights_and_state(self.model) if id(each) not in self._local
            ]
            broadcast_variables(variables, self.root_rank)
            self.broadcast_done = True

    class MetricAverageCallback(Callback):
        """Metrics of an epoch become averages of all ranks. List it before those that use them."""

        def __init__(self, device: str = "") -> None:
            super().__init__()
            self._allreduce_ops: dict[str, Any] = {}

        def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
            if not logs:
                return
            names = sorted(logs)
            values = numpy.asarray([float(logs[name]) for name in names], numpy.float64)
            averages = arrays.allreduce(values, name="MetricAverageCallback")
            logs.update((name, float(value)) for name, value in zip(names, averages))

    class LearningRateScheduleCallback(Callback):
        """The learning rate is initial_lr * multiplier(epoch) from start_epoch to end_epoch.

        staircase=False changes it at every batch, with fractions of epochs.
        """

        def __init__(
            self,
            initial_lr: float,
            multiplier: Any,
            start_epoch: int = 0,
            end_epoch: int | None = None,
            staircase: bool = True,
            momentum_correction: bool = True,
            steps_per_epoch: int | None = None,
        ) -> None:
            super().__init__()
            if initial_lr is None:
                raise ValueError("initial_lr is needed")
            self.initial_lr = initial_lr
            self.start_epoch = start_epoch
            self.end_epoch = end_epoch
            self.staircase = staircase
            self.momentum_correction = momentum_correction
            self.steps_per_epoch: Any = steps_per_epoch  # known once training begins
            self.current_epoch = 0
            self._restore_momentum: float | None = None
            if callable(multiplier):
                self.multiplier: Callable[[float], float] = multiplier
            else:
                self.staircase = True
                self.multiplier = lambda epoch: multiplier

        def _in_range(self) -> bool:
            return self.current_epoch >= self.start_epoch and (
                self.end_epoch is None or self.current_epoch < self.end_epoch
            )

        def _momentum(self) -> Any:
            """Legacy optimizers keep it where it can be changed; the others build it in."""
            return getattr(self.model.optimizer, "_hyper", {}).get("momentum")

        def _adjust(self, epoch: float) -> None:
            optimizer = self.model.optimizer
            old = float(numpy.asarray(optimizer.learning_rate))
            new = self.initial_lr * self.multiplier(epoch)
            optimizer.learning_rate = new
            if self.momentum_correction and self._momentum() is not None and old:
                momentum = float(numpy.asarray(optimizer.momentum))
                if momentum:
                    self._restore_momentum = momentum
                    optimizer.momentum = momentum * new / old

        def on_train_begin(self, logs: Any = None) -> None:
            if not self.staircase and not self.steps_per_epoch:
                self.steps_per_epoch = (self.params or {}).get("steps")
                if not self.steps_per_epoch:
                    raise ValueError(
                        "steps_per_epoch is needed: Keras does not know the length of an epoch"
                    )

        def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
            self.current_epoch = epoch

        def on_batch_begin(self, batch: int, logs: Any = None) -> None:
            if not self._in_range():
                return
            if self.staircase and batch == 0:
                self._adjust(self.current_epoch)
            elif not self.staircase:
                self._adjust(self.current_epoch + batch / self.steps_per_epoch)

        def on_batch_end(self, batch: int, logs: Any = None) -> None:
            if self._restore_momentum is not None:
                self.model.optimizer.momentum = self._restore_momentum
                self._restore_momentum = None

        def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
            if logs is not None:
                logs["lr"] = float(numpy.asarray(self.model.optimizer.learning_rate))

    class LearningRateWarmupCallback(LearningRateScheduleCallback):
        """From initial_lr / size to initial_lr over the first epochs."""

        def __init__(
            self,
            initial_lr: float,
            warmup_epochs: float = 5,
            momentum_correction: bool = True,
            steps_per_epoch: int | None = None,
            verbose: int = 0,
        ) -> None:
            def multiplier(epoch: float) -> float:
                # The last batch of the warm-up has the whole rate.
                epoch += 1.0 / self.steps_per_epoch
                size = core.size()
                return 1.0 / size * (epoch * (size - 1) / warmup_epochs + 1)

            super().__init__(
                initial_lr,
                multiplier,
                start_epoch=0,
                end_epoch=warmup_epochs,  # type: ignore[arg-type]
                staircase=False,
                momentum_correction=momentum_correction,
                steps_per_epoch=steps_per_epoch,
            )
            self.verbose = verbose

        def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
            super().on_epoch_end(epoch, logs)
            if epoch == (self.end_epoch or 0) - 1 and self.verbose > 0 and core.rank() == 0:
                rate = float(numpy.asarray(self.model.optimizer.learning_rate))
                print(f"\nEpoch {epoch + 1}: finished gradual learning rate warmup to {rate:g}.")

    class BestModelCheckpoint(keras.callbacks.ModelCheckpoint):
        """Keeps the best model only. Give it to rank 0 alone, or a file to each rank."""

        def __init__(
            self,
            monitor: str = "val_loss",
            verbose: int = 0,
            save_weights_only: bool = False,
            mode: str = "auto",
            save_freq: Any = "epoch",
            filepath: str | None = None,
        ) -> None:
            if filepath is None:
                filepath = "best_model" + (".weights.h5" if save_weights_only else ".keras")
            super().__init__(
                filepath=filepath,
                monitor=monitor,
                verbose=verbose,
                save_best_only=True,
                save_weights_only=save_weights_only,
                mode=mode,
                save_freq=save_freq,
            )

    return SimpleNamespace(
        BroadcastGlobalVariablesCallback=BroadcastGlobalVariablesCallback,
        MetricAverageCallback=MetricAverageCallback,
        LearningRateScheduleCallback=LearningRateScheduleCallback,
        LearningRateWarmupCallback=LearningRateWarmupCallback,
        BestModelCheckpoint=BestModelCheckpoint,
    )
