"""Reductions as scripts call them: dense and sparse tensors, groups, compression."""

from __future__ import annotations

from typing import Any, Sequence

import tensorflow as tf

from ..process_sets import ProcessSet, global_process_set
from . import mpi_ops
from .compression import Compression
from .mpi_ops import Average, Sum, handle_average_backwards_compatibility


def _part(name: str | None, part: Any) -> str | None:
    return None if name is None else f"{name}_{part}"


def _sparse(slices: Any, name: str | None, op: int, pre: float, post: float, set: Any) -> Any:
    """Rows that several ranks have are added when they are applied."""
    if op not in (Sum, Average):
        raise NotImplementedError(
            "IndexedSlices can be reduced with Sum and Average only: use sparse_as_dense=True"
        )
    values = mpi_ops.allgather(slices.values, _part(name, "values"), process_set=set)
    indices = mpi_ops.allgather(slices.indices, _part(name, "indices"), process_set=set)
    scale = pre * post / (set.size() if op == Average else 1)
    if scale != 1.0:
        values = values * tf.cast(scale, values.dtype)
    return tf.IndexedSlices(values, indices, dense_shape=slices.dense_shape)


def allreduce(
    tensor: Any,
    average: bool | None = None,
    device_dense: str = "",
    device_sparse: str = "",
    compression: Any = Compression.none,
    op: int | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    name: str | None = None,
    process_set: ProcessSet = global_process_set,
    ignore_name_scope: bool = False,
) -> Any:
    """The reduction over all ranks; the average, unless `op` says otherwise."""
    op = handle_average_backwards_compatibility(op, average)
    if isinstance(tensor, tf.IndexedSlices):
        with tf.device(device_sparse or None):
            return _sparse(tensor, name, op, prescale_factor, postscale_factor, process_set)
    with tf.device(device_dense or None):
        small, ctx = compression.compress(tf.convert_to_tensor(tensor))
        reduced = mpi_ops._allreduce(
            small, name, op, prescale_factor, postscale_factor, ignore_name_scope, process_set
        )
        return compression.decompress(reduced, ctx)


def grouped_allreduce(
    tensors: Sequence[Any],
    average: bool | None = None,
    device_dense: str = "",
    device_sparse: str = "",
    compression: Any = Compression.none,
    op: int | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
    ignore_name_scope: bool = False,
    name: str | None = None,
) -> list[Any]:
    """Several tensors, reduced together. Sparse ones travel on their own."""
    op = handle_average_backwards_compatibility(op, average)
    results: list[Any] = [None] * len(tensors)
    dense: list[int] = []
    for i, tensor in enumerate(tensors):
        if isinstance(tensor, tf.IndexedSlices):
            with tf.device(device_sparse or None):
                results[i] = _sparse(
                    tensor, _part(name, i), op, prescale_factor, postscale_factor, process_set
                )
        else:
            dense.append(i)
    with tf.device(device_dense or None):
        packed = [compression.compress(tf.convert_to_tensor(tensors[i])) for i in dense]
        reduced = mpi_ops._grouped_allreduce(
            [small for small, _ in packed],
            name,
            op,
            prescale_factor,
            postscale_factor,
            ignore_name_scope,
            process_set,
        )
        for i, value, (_, ctx) in zip(dense, reduced, packed):
            results[i] = compression.decompress(value, ctx)
    return results


def reducescatter(
    tensor: Any,
    device_dense: str = "",
    compression: Any = Compression.none,
    op: int = Average,
    name: str | None = None,
    process_set: ProcessSet = global_process_set,
    ignore_name_scope: bool = False,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
) -> Any:
    """This rank's rows of the reduction; as even as possible, first ranks get one more."""
    return _reducescatter(
        [tensor],
        device_dense,
        compression,
        name,
        op,
        prescale_factor,
        postscale_factor,
        ignore_name_scope,
        process_set,
    )[0]


def _reducescatter(
    tensors: Sequence[Any], device_dense: str, compression: Any, name: str | None, *how: Any
) -> list[Any]:
    with tf.device(device_dense or None):
        packed = [compression.compress(tf.convert_to_tensor(each)) for each in tensors]
        reduced = mpi_ops._reducescatter([small for small, _ in packed], name, *how)
        return [compression.decompress(value, ctx) for value, (_, ctx) in zip(reduced, packed)]


def grouped_reducescatter(
    tensors: Sequence[Any],
    device_dense: str = "",
    compression: Any = Compression.none,
    op: int = Average,
    process_set: ProcessSet = global_process_set,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    name: str | None = None,
) -> list[Any]:
    """Several tensors, reduced together or not at all."""
    return _reducescatter(
        tensors,
        device_dense,
        compression,
        name,
        op,
        prescale_factor,
        postscale_factor,
        False,
        process_set,
    )
