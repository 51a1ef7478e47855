"""Keeps Keras 3 from compiling distributed training steps with XLA."""

from __future__ import annotations

from typing import Any

_done = False


def without_xla() -> None:
    """From now on models with a distributed optimizer count as not compilable.

    jit_compile="auto" then is False, and jit_compile=True gets Keras's own warning that it is.
    """
    global _done
    if _done:
        return
    from keras.src.trainers import trainer

    from .optimizers import Distributed

    before = trainer.model_supports_jit

    def model_supports_jit(model: Any) -> bool:
        optimizer = getattr(model, "optimizer", None)
        while optimizer is not None:
            if isinstance(optimizer, Distributed):
                return False
            optimizer = getattr(optimizer, "inner_optimizer", None)  # loss scaling
        return before(model)

    trainer.model_supports_jit = model_supports_jit
    _done = True
