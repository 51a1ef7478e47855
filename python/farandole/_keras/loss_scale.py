"""Loss scaling around a distributed optimizer, as Keras 3 puts it there for mixed_float16.

Whether gradients are finite must be decided for all ranks alike: they are reduced before.
"""

from __future__ import annotations

from typing import Any

_done = False


def reduce_before_loss_scaling() -> None:
    """Once per process, for Keras 3."""
    global _done
    if _done:
        return
    from keras.src.optimizers.loss_scale_optimizer import LossScaleOptimizer

    from .optimizers import Distributed

    before = LossScaleOptimizer.apply

    def apply(self: Any, grads: Any, trainable_variables: Any = None) -> Any:
        inner = self.inner_optimizer
        if not isinstance(inner, Distributed):
            return before(self, grads, trainable_variables)
        if inner._farandole_combines_steps():
            raise ValueError(
                "op=Adasum inside of loss scaling: each rank would decide for itself whether to "
                "step; put DistributedOptimizer around the LossScaleOptimizer"
            )
        variables = (
            self._trainable_variables if trainable_variables is None else list(trainable_variables)
        )
        reduced = inner._farandole_reducer.reduce(list(grads), variables)
        given = None if trainable_variables is None else variables
        object.__setattr__(inner, "_farandole_reduced", True)
        try:
            return before(self, reduced, given)
        finally:
            object.__setattr__(inner, "_farandole_reduced", False)

    LossScaleOptimizer.apply = apply
    _done = True
