"""GradientTapes whose gradients are those of all ranks."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from ..process_sets import ProcessSet, global_process_set
from .compression import Compression
from .gradients import GradientReducer
from .mpi_ops import Average


class _Distributed:
    """Put in front of the tape's own class."""

    _reducer: GradientReducer

    def gradient(self, target: Any, sources: Any, *args: Any, **kwargs: Any) -> Any:
        grads = super().gradient(target, sources, *args, **kwargs)  # type: ignore[misc]
        flat = tf.nest.flatten(grads, expand_composites=False)
        reduced = self._reducer.reduce(flat, tf.nest.flatten(sources))
        return tf.nest.pack_sequence_as(grads, reduced)

    def register_local_source(self, source: Any) -> None:
        """The gradient of this variable is not reduced."""
        self._reducer.register_local(source)

    def get_local_and_global_gradients(
        self, grads: Any, sources: Any = None
    ) -> tuple[list[Any], list[Any]]:
        """(grads of local sources, all others); without sources all count as global."""
        flat = tf.nest.flatten(grads)
        variables = [None] * len(flat) if sources is None else tf.nest.flatten(sources)
        local = [grad for grad, each in zip(flat, variables) if self._reducer.is_local(each)]
        shared = [grad for grad, each in zip(flat, variables) if not self._reducer.is_local(each)]
        return local, shared


def _wrap(tape: Any, reducer: GradientReducer) -> Any:
    """A tape of a subclass that shares everything with the one given, which may be recording."""
    if isinstance(tape, _Distributed):
        raise ValueError("this tape is distributed already")
    kind: Any = type(type(tape).__name__, (_Distributed, type(tape)), {})
    wrapped = kind.__new__(kind)
    wrapped.__dict__.update(tape.__dict__)
    wrapped._reducer = reducer
    return wrapped


def DistributedGradientTape(
    gradtape: Any,
    device_dense: str = "",
    device_sparse: str = "",
    compression: Any = Compression.none,
    sparse_as_dense: bool = False,
    op: int = Average,
    gradient_predivide_factor: float = 1.0,
    num_groups: int = 0,
    groups: Any = None,
    process_set: ProcessSet = global_process_set,
    scale_local_gradients: bool = True,
) -> Any:
    """gradient() of the tape it returns reduces over all ranks."""
    return _wrap(
        gradtape,
        GradientReducer(
            "DistributedGradientTape",
            device_dense,
            device_sparse,
            compression,
            sparse_as_dense,
            op,
            gradient_predivide_factor,
            num_groups,
            groups,
            process_set,
            scale_local_gradients,
        ),
    )


def PartialDistributedGradientTape(
    gradtape: Any,
    device_dense: str = "",
    device_sparse: str = "",
    compression: Any = Compression.none,
    sparse_as_dense: bool = False,
    op: int = Average,
    gradient_predivide_factor: float = 1.0,
    num_groups: int = 0,
    groups: Any = None,
    process_set: ProcessSet = global_process_set,
    local_layers: Any = None,
    scale_local_gradients: bool = True,
) -> Any:
    """The gradients of local_layers (a layer or a list of them) stay on their rank."""
    tape = DistributedGradientTape(
        gradtape,
        device_dense,
        device_sparse,
        compression,
        sparse_as_dense,
        op,
        gradient_predivide_factor,
        num_groups,
        groups,
        process_set,
        scale_local_gradients,
    )
    for variable in variables_of(local_layers):
        tape.register_local_source(variable)
    return tape


def variables_of(layers: Any) -> list[Any]:
    """The trainable variables of a layer or of several."""
    if layers is None:
        return []
    if not isinstance(layers, (list, tuple, set)):
        layers = [layers]
    found = []
    for layer in layers:
        if not hasattr(layer, "trainable_variables"):
            raise ValueError(f"local_layers are layers of Keras, not {type(layer).__name__}")
        found.extend(layer.trainable_variables)
    return found
