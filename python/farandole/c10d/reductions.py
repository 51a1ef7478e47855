"""all_reduce, reduce, reduce_scatter, in all their forms."""

from __future__ import annotations

from typing import Any, List, Sequence

import torch

from .. import _abi, errors
from . import memory
from .buckets import called_by_autograd
from .dtypes import reduce_op, reducible
from .work import Work


class Reductions:
    """A part of ProcessGroup."""

    def allreduce(self, tensors: Any, opts: Any = None, timeout: Any = None) -> Work:
        if isinstance(tensors, torch.Tensor):
            tensors = [tensors]
        tensor = memory.one(tensors, "all_reduce")
        if tensor.layout != torch.strided:
            from .sparse import allreduce_sparse

            return allreduce_sparse(self, tensor, opts)
        used = memory.dense(tensor, "all_reduce")
        finish = None if used is tensor else lambda _: memory.give_back(tensor, used)
        by_autograd = called_by_autograd()
        if by_autograd and used is tensor:
            address, keep, last = self._home.buckets.find(used)
        else:
            address, keep, last = used.data_ptr(), used, False
        work = self._start(
            "all_reduce",
            _abi.ALLREDUCE,
            reducible(used, "all_reduce"),
            used.shape,
            address,
            address,
            tensors,
            opts,
            finish,
            keep,
            reduce_op(opts),
            flags=_abi.FLAG_WILL_WAIT if last else 0,
        )
        if by_autograd:
            work._drive_after_backward()
        return work

    def allreduce_coalesced(self, tensors: List[torch.Tensor], opts: Any = None) -> Work:
        used = [memory.dense(each, "all_reduce_coalesced") for each in tensors]
        number = reduce_op(opts)
        tag = next(self._home.tags)
        requests = [
            self._request(
                self._home.queue,
                tag,
                _abi.ALLREDUCE,
                reducible(each, "all_reduce_coalesced"),
                each.shape,
                each.data_ptr(),
                each.data_ptr(),
                number,
                group=1,
            )
            for each in used
        ]

        def finish(_: Any) -> None:
            for tensor, each in zip(tensors, used):
                memory.give_back(tensor, each)

        return self._start_all("all_reduce_coalesced", requests, tensors, opts, finish, used, tag)

    def reduce(self, tensors: Any, opts: Any) -> Work:
        tensor = memory.one(tensors, "reduce")
        used = memory.dense(tensor, "reduce")
        root = self._root(opts)
        mine = root == self._ranks[self._me]
        finish = None if used is tensor or not mine else lambda _: memory.give_back(tensor, used)
        return self._start(
            "reduce",
            _abi.REDUCE,
            reducible(used, "reduce"),
            used.shape,
            used.data_ptr(),
            used.data_ptr() if mine else 0,
            tensors,
            opts,
            finish,
            used,
            reduce_op(opts),
            root,
        )

    def reduce_scatter(
        self, output_tensors: Any, input_tensors: Any, opts: Any = None, timeout: Any = None
    ) -> Work:
        if isinstance(output_tensors, torch.Tensor):
            output_tensors, input_tensors = [output_tensors], [input_tensors]
        what = "reduce_scatter"
        output = memory.one(output_tensors, what)
        inputs = memory.one(input_tensors, what)
        self._check_list(inputs, what)
        memory.check_same(inputs, output, what)
        counts = memory.counts(inputs)
        if counts[self._me] != output.numel():
            raise errors.InvalidArgument(
                f"{what}: the output has {output.numel()} elements, this rank's part "
                f"{counts[self._me]}"
            )
        packed = memory.pack(inputs)
        return self._reduce_scatter(what, output, packed, counts, output_tensors, opts)

    def reduce_scatter_single(
        self, output: torch.Tensor, input: torch.Tensor, opts: Any = None
    ) -> Work:
        what = "reduce_scatter_tensor"
        self._check_scattered(what, output, input)
        used = memory.dense(input, what)
        return self._reduce_scatter(
            what, output, used, [output.numel()] * self._members, [output], opts
        )

    _reduce_scatter_base = reduce_scatter_single

    def _check_scattered(self, what: str, output: torch.Tensor, input: torch.Tensor) -> None:
        memory.check_same([output], input, what)
        if input.numel() != output.numel() * self._members:
            raise errors.InvalidArgument(
                f"{what}: an input of {input.numel()} elements is not {self._members} times the "
                f"output's {output.numel()}"
            )

    def _reduce_scatter(
        self,
        what: str,
        output: torch.Tensor,
        packed: torch.Tensor,
        counts: Sequence[int],
        result: Any,
        opts: Any,
    ) -> Work:
        target = output if memory.usable(output) else torch.empty(output.shape, dtype=output.dtype)
        finish = None if target is output else lambda _: memory.give_back(output, target)
        return self._start(
            what,
            _abi.REDUCESCATTER,
            reducible(packed, what),
            (packed.numel(),),
            packed.data_ptr(),
            target.data_ptr(),
            result,
            opts,
            finish,
            (packed, target),
            reduce_op(opts),
            splits=counts,
        )

    def reduce_scatter_single_coalesced(
        self, outputs: List[torch.Tensor], inputs: List[torch.Tensor], opts: Any = None
    ) -> Work:
        what = "reduce_scatter_tensor_coalesced"
        tag = next(self._home.tags)
        number = reduce_op(opts)
        requests, kept = [], []
        for output, input in zip(outputs, inputs):
            self._check_scattered(what, output, input)
            used = memory.dense(input, what)
            target = (
                output if memory.usable(output) else torch.empty(output.shape, dtype=output.dtype)
            )
            kept.append((output, target, used))
            requests.append(
                self._request(
                    self._home.queue,
                    tag,
                    _abi.REDUCESCATTER,
                    reducible(used, what),
                    (used.numel(),),
                    used.data_ptr(),
                    target.data_ptr(),
                    number,
                    splits=[output.numel()] * self._members,
                )
            )

        def finish(_: Any) -> None:
            for output, target, _used in kept:
                memory.give_back(output, target)

        return self._start_all(what, requests, outputs, opts, finish, kept, tag)

    reduce_scatter_tensor_coalesced = reduce_scatter_single_coalesced
