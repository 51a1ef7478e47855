"""Which operations are used: the compiled ones, or, where they cannot be had, the plain ones.

FARANDOLE_TENSORFLOW_OPS=compiled makes their absence an error, =plain does not even try.
"""

from __future__ import annotations

import os
import re
import threading
from typing import Any, Optional, Tuple

import tensorflow as tf
from tensorflow.python.ops import control_flow_util

from ..errors import InvalidArgument, Unavailable
from . import build_ops

_backend: Any = None
_lock = threading.Lock()


def _make() -> Any:
    wish = os.environ.get("FARANDOLE_TENSORFLOW_OPS", "auto")
    if wish not in ("auto", "compiled", "plain"):
        raise InvalidArgument(
            f"FARANDOLE_TENSORFLOW_OPS={wish}: possible are auto, compiled and plain"
        )
    if wish != "plain":
        from ._compiled import Compiled

        try:
            return Compiled()
        except build_ops.CannotBuild as error:
            if wish == "compiled":
                raise Unavailable(f"there are no compiled operations: {error}") from None
            if os.environ.get("FARANDOLE_LOCAL_RANK", "0") == "0":
                build_ops.say(
                    f"no compiled operations: {error}. Python functions are used instead: slower, "
                    "and reductions do not overlap with the backward pass"
                )
    from ._plain import Plain

    return Plain()


def backend() -> Any:
    """The operations of this process, made at the first call."""
    global _backend
    if _backend is None:
        with _lock:
            if _backend is None:
                _backend = _make()
    return _backend


def refuse_xla(what: str) -> None:
    """XLA compiles whole functions and cannot wait for other ranks inside of them."""
    graph = tf.compat.v1.get_default_graph()
    if control_flow_util.GraphOrParentsInXlaContext(graph):
        raise InvalidArgument(
            f"{what} cannot be compiled by XLA: use jit_compile=False for the function (or "
            "model.compile) that reduces, and jit_compile=True for functions it calls to compute "
            "losses and gradients"
        )


def names(
    what: str, name: Optional[str], tensor: Any = None, ignore_name_scope: bool = False
) -> Tuple[Optional[str], str]:
    """The node's name, and what matches the operation between ranks ("" is the order of calls).

    In a graph that is the node's whole name, which is unique there: "*".
    """
    if tf.executing_eagerly():
        return None, name or ""
    refuse_xla(what if name is None else f"{what} '{name}'")
    if name is None:
        name = what
        if tensor is not None and getattr(tensor, "name", None):
            name += "_" + tensor.name
    node = re.sub(r"[^A-Za-z0-9_.\\/-]", "_", name).lstrip("_-/\\") or what
    return node, "*/" if ignore_name_scope else "*"
