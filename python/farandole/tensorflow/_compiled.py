"""The operations as nodes of TensorFlow's graphs, from the library that build_ops makes."""

from __future__ import annotations

import ctypes
from typing import Any, Sequence

import tensorflow as tf
from tensorflow.python.framework import auto_control_deps

from .._library import library
from . import build_ops
from ._reduction import Reduction
from .interrupts import withdraw_on_ctrl_c

# tf.function puts stateful operations in a row. These may run in any order, since names match them
# between ranks, and must run even if the result is not used here: other ranks may wait.
_INDEPENDENT = (
    "FarandoleAllreduce",
    "FarandoleGroupedAllreduce",
    "FarandoleReducescatter",
    "FarandoleGroupedReducescatter",
    "FarandoleAllgather",
    "FarandoleGroupedAllgather",
    "FarandoleAlltoall",
    "FarandoleBroadcast",
    "FarandoleQuery",
)


def _leave_order_alone() -> None:
    known = auto_control_deps.MUST_RUN_ORDER_INSENSITIVE_STATEFUL_OPS
    auto_control_deps.MUST_RUN_ORDER_INSENSITIVE_STATEFUL_OPS = known | frozenset(_INDEPENDENT)


class Compiled:
    """`node` is the name of the node, `name` what matches the operation between ranks."""

    compiled = True

    def __init__(self) -> None:
        path = build_ops.library_path()
        try:
            self._library = tf.load_op_library(path)
        except Exception as error:
            raise build_ops.CannotBuild(f"{path} cannot be loaded: {error}") from None
        loaded = ctypes.CDLL(path)
        bind = loaded.farandole_ops_bind
        bind.restype = ctypes.c_char_p
        bind.argtypes = [ctypes.c_char_p]
        trouble = bind(library().path.encode())
        if trouble:
            raise build_ops.CannotBuild(trouble.decode())
        loaded.farandole_ops_withdraw_all.restype = None
        withdraw_on_ctrl_c(loaded.farandole_ops_withdraw_all)
        _leave_order_alone()

    def allreduce(self, tensor: Any, node: str | None, name: str, how: Reduction) -> Any:
        return self._library.farandole_allreduce(tensor, name=node, **how.attributes(name))

    def grouped_allreduce(
        self, tensors: Sequence[Any], node: str | None, name: str, how: Reduction
    ) -> list[Any]:
        return list(
            self._library.farandole_grouped_allreduce(
                list(tensors), name=node, **how.attributes(name)
            )
        )

    def reducescatter(self, tensor: Any, node: str | None, name: str, how: Reduction) -> Any:
        return self._library.farandole_reducescatter(tensor, name=node, **how.attributes(name))

    def grouped_reducescatter(
        self, tensors: Sequence[Any], node: str | None, name: str, how: Reduction
    ) -> list[Any]:
        return list(
            self._library.farandole_grouped_reducescatter(
                list(tensors), name=node, **how.attributes(name)
            )
        )

    def allgather(self, tensor: Any, node: str | None, name: str, set: int) -> tuple[Any, Any]:
        gathered, rows = self._library.farandole_allgather(
            tensor, tensor_name=name, process_set=set, name=node
        )
        return gathered, rows

    def grouped_allgather(
        self, tensors: Sequence[Any], node: str | None, name: str, set: int
    ) -> tuple[list[Any], list[Any]]:
        gathered, rows = self._library.farandole_grouped_allgather(
            list(tensors), count=len(tensors), tensor_name=name, process_set=set, name=node
        )
        return list(gathered), list(rows)

    def alltoall(
        self, tensor: Any, splits: Any, node: str | None, name: str, set: int
    ) -> tuple[Any, Any]:
        received, rows = self._library.farandole_alltoall(
            tensor, splits, tensor_name=name, process_set=set, name=node
        )
        return received, rows

    def broadcast(self, tensor: Any, root: int, node: str | None, name: str, set: int) -> Any:
        return self._library.farandole_broadcast(
            tensor, tensor_name=name, process_set=set, root_rank=root, name=node
        )

    def barrier(self, node: str | None, name: str, set: int) -> Any:
        return self._library.farandole_barrier(tensor_name=name, process_set=set, name=node)

    def join(self, node: str | None, name: str, set: int) -> Any:
        # Joins have no names: every rank joins once at a time.
        return self._library.farandole_join(tensor_name="", process_set=set, name=node)

    def query(self, what: str, node: str | None, set: int) -> Any:
        return self._library.farandole_query(what=what, process_set=set, name=node)
