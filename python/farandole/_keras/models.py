"""load_model: a saved model, whose optimizer is distributed at once."""

from __future__ import annotations

from typing import Any, Sequence

from .optimizers import Distributed, distribute


def load_model(
    keras: Any,
    filepath: Any,
    custom_optimizers: Sequence[Any] | None,
    custom_objects: dict[str, Any] | None,
    **options: Any,
) -> Any:
    """The state of the optimizer is kept. Rank 0 alone may load, if variables are broadcast."""
    known = {kind.__name__: kind for kind in custom_optimizers or ()}
    known.update(custom_objects or {})
    model = keras.models.load_model(filepath, custom_objects=known or None)
    optimizer = getattr(model, "optimizer", None)
    if optimizer is not None and not isinstance(optimizer, Distributed):
        model.optimizer = distribute(optimizer, **options)
        if hasattr(model, "jit_compile"):
            model.jit_compile = False
        for made in ("train_function", "train_tf_function"):
            if getattr(model, made, None) is not None:
                setattr(model, made, None)
    return model
