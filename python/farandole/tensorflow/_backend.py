"""Which operations are used: the compiled ones, or, where they cannot be had, the plain ones.

FARANDOLE_TENSORFLOW_OPS=compiled makes their absence an error, =plain does not even try. The two
kinds have other names in graphs and group gradients otherwise, so the ranks of a process set agree
on one of them when they use it for the first time: on compiled ones if all have them.
"""

from __future__ import annotations

import ctypes
import json
import os
import re
import threading
from typing import Any

import tensorflow as tf
from tensorflow.python.ops import control_flow_util

from .. import core
from ..errors import InvalidArgument, Unavailable
from . import build_ops

_WANTED = "FARANDOLE_TENSORFLOW_OPS=plain"

_lock = threading.RLock()
# This process's own, until ranks have agreed.
_own: Any = None
_trouble = ""  # why they are plain
# What ranks have agreed on, and the process sets that did so since this init.
_agreed: Any = None
_sets: set[int] = set()
_generation = -1


def _wish() -> str:
    wish = os.environ.get("FARANDOLE_TENSORFLOW_OPS", "auto")
    if wish not in ("auto", "compiled", "plain"):
        raise InvalidArgument(
            f"FARANDOLE_TENSORFLOW_OPS={wish}: possible are auto, compiled and plain"
        )
    return wish


def _plain() -> Any:
    from ._plain import Plain

    return Plain()


def _make() -> Any:
    global _trouble
    wish = _wish()
    if wish == "plain":
        _trouble = _WANTED
        return _plain()
    from ._compiled import Compiled

    try:
        return Compiled()
    except build_ops.CannotBuild as error:
        if wish == "compiled":
            raise Unavailable(f"there are no compiled operations: {error}") from None
        _trouble = str(error)
    return _plain()


@tf.autograph.experimental.do_not_convert  # what is made while a function is traced is kept
def own() -> Any:
    """What this process has, whatever the others have; made at the first call."""
    global _own
    with _lock:
        if _own is None:
            _own = _make()
        return _agreed or _own


def _exchange(card: list[Any], number: int) -> list[Any]:
    """The cards of all members that have not joined."""
    data = json.dumps(card).encode()
    buffer = ctypes.create_string_buffer(data, len(data))
    handle = core.allgather(
        ctypes.addressof(buffer),
        len(data),
        core.DType.UINT8,
        name="farandole.tensorflow: compiled or plain operations",
        process_set=number,
        keep=buffer,
    )
    cards = []
    start = 0
    lengths = handle.result().splits
    gathered = bytes(memoryview(core.result_view(handle)))
    for length in filter(None, lengths):
        cards.append(json.loads(gathered[start : start + length]))
        start += length
    return cards


def _agree(number: int) -> Any:
    """Collective among the set's members."""
    global _trouble
    mine = own()
    members = core.members(number)
    # Who, why plain, and whether that cannot be changed any more.
    fixed = _agreed is not None or _wish() == "compiled"
    card = [core.rank(), mine.compiled, _trouble, fixed]
    cards = [card] if len(members) == 1 else _exchange(card, number)
    plain = [(rank, why) for rank, compiled, why, _ in cards if not compiled]
    bound = [rank for rank, compiled, _, fixed in cards if compiled and fixed]
    if not plain:
        return mine
    first, why = plain[0]
    if bound:
        raise InvalidArgument(
            f"rank {first} has no compiled operations for TensorFlow ({why}), but rank {bound[0]} "
            "uses them already, or must: give all ranks a compiler, or all of them "
            "FARANDOLE_TENSORFLOW_OPS=plain"
        )
    wanted = len(plain) == len(cards) and all(why == _WANTED for _, why in plain)
    if core.rank() == cards[0][0] and _agreed is None and not wanted:
        where = "" if len(plain) == len(cards) else f" on rank {first}"
        build_ops.say(
            f"no compiled operations{where}: {why}. All ranks use Python functions instead: "
            "slower, and reductions do not overlap with the backward pass"
        )
    if not mine.compiled:
        return mine
    _trouble = f"rank {first} has none"
    return _plain()


@tf.autograph.experimental.do_not_convert
def backend(number: int = 0) -> Any:
    """The operations for a process set. The first call for it waits for the other members."""
    global _agreed, _generation
    if _agreed is not None and number in _sets and _generation == core.generation():
        return _agreed
    core.require_initialised()
    if core.rank() not in core.members(number):
        return own()  # the operation itself says that this rank cannot use it
    with _lock:
        if _generation != core.generation():
            _sets.clear()
            _generation = core.generation()
        if number not in _sets:
            _agreed = _agree(number)
            _sets.add(number)
        return _agreed


def refuse_xla(what: str) -> None:
    """XLA compiles whole functions and cannot wait for other ranks inside them."""
    graph = tf.compat.v1.get_default_graph()
    if control_flow_util.GraphOrParentsInXlaContext(graph):
        raise InvalidArgument(
            f"{what} cannot be compiled by XLA: use jit_compile=False for the function (or "
            "model.compile) that reduces, and jit_compile=True for functions it calls to compute "
            "losses and gradients"
        )


def names(
    what: str, name: str | None, tensor: Any = None, ignore_name_scope: bool = False
) -> tuple[str | None, str]:
    """The node's name, and what matches the operation between ranks ("" is the order of calls).

    In a graph that is the node's whole name, which is unique there: "*".
    """
    if tf.executing_eagerly():
        return None, name or ""
    refuse_xla(what if name is None else f"{what} '{name}'")
    chosen: str = what if name is None else name
    if name is None and getattr(tensor, "name", None):
        chosen += f"_{tensor.name}"
    node = re.sub(r"[^A-Za-z0-9_.\\/-]", "_", chosen).lstrip("_-/\\") or what
    return node, "*/" if ignore_name_scope else "*"
