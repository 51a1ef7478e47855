"""all_reduce, reduce, reduce_scatter, in all their forms."""

from __future__ import annotations

from typing import Any, Sequence

import torch

from .. import _abi, errors
from ..requests import make
from . import memory
from .buckets import called_by_autograd
from .dtypes import reduce_op, reducible
from .group import ORDERED, ORDERED_WAITING, Group
from .work import Work


class Reductions(Group):
    """A part of ProcessGroup."""

    def allreduce(self, tensors: Any, opts: Any = None, timeout: Any = None) -> Work:
        if isinstance(tensors, torch.Tensor):
            tensors = [tensors]
        tensor = memory.one(tensors, "all_reduce")
        if tensor.layout != torch.strided:
            from .sparse import allreduce_sparse

            return allreduce_sparse(self, tensor, opts)
        by_autograd = called_by_autograd()
        if by_autograd and memory.usable(tensor) and getattr(opts, "asyncOp", True):
            return self._allreduce_bucket(tensors, tensor, opts)
        used = memory.dense(tensor, "all_reduce")
        finish = None if used is tensor else lambda _: memory.give_back(tensor, used)
        address = used.data_ptr()
        work = self._start(
            "all_reduce",
            make(
                _abi.ALLREDUCE,
                used.shape,
                dtype=reducible(used, "all_reduce"),
                input=address,
                output=address,
                op=reduce_op(opts),
            ),
            tensors,
            opts,
            finish,
            used,
        )
        if by_autograd:
            work._drive_after_backward()
        return work

    def _allreduce_bucket(self, tensors: Any, tensor: torch.Tensor, opts: Any) -> Work:
        """The same for DDP, which gives the same few tensors in every step, and waits soon: what is
        always the same about them is done once."""
        self._check_usable("all_reduce")
        home = self._home
        place, address = home.buckets.find(tensor)
        number = reduce_op(opts)
        count = tensor.numel()
        what = (address, tensor.dtype, count, number)
        if place.what != what:
            place.request = make(
                _abi.ALLREDUCE,
                (count,),
                dtype=reducible(tensor, "all_reduce"),
                input=address,
                output=address,
                op=number,
            )
            place.what = what
        work = Work(home, "all_reduce", tensors, self._limit_of(opts), None, (tensor, place.buffer))
        self._launch(work, place.request, ORDERED_WAITING if place.last else ORDERED)
        work._drive_after_backward()
        return work

    def allreduce_coalesced(self, tensors: list[torch.Tensor], opts: Any = None) -> Work:
        used = [memory.dense(each, "all_reduce_coalesced") for each in tensors]
        number = reduce_op(opts)
        requests = [
            make(
                _abi.ALLREDUCE,
                each.shape,
                dtype=reducible(each, "all_reduce_coalesced"),
                input=each.data_ptr(),
                output=each.data_ptr(),
                op=number,
                group=1,
            )
            for each in used
        ]

        def finish(_: Any) -> None:
            for tensor, each in zip(tensors, used):
                memory.give_back(tensor, each)

        return self._start_all("all_reduce_coalesced", requests, tensors, opts, finish, used)

    def reduce(self, tensors: Any, opts: Any) -> Work:
        tensor = memory.one(tensors, "reduce")
        used = memory.dense(tensor, "reduce")
        root = self._root(opts)
        mine = root == self._ranks[self._me]
        finish = None if used is tensor or not mine else lambda _: memory.give_back(tensor, used)
        return self._start(
            "reduce",
            make(
                _abi.REDUCE,
                used.shape,
                dtype=reducible(used, "reduce"),
                input=used.data_ptr(),
                output=used.data_ptr() if mine else 0,
                op=reduce_op(opts),
                root=root,
            ),
            tensors,
            opts,
            finish,
            used,
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
            make(
                _abi.REDUCESCATTER,
                (packed.numel(),),
                dtype=reducible(packed, what),
                input=packed.data_ptr(),
                output=target.data_ptr(),
                op=reduce_op(opts),
                splits=counts,
                output_bytes=memory.size_of(target),
            ),
            result,
            opts,
            finish,
            (packed, target),
        )

    def reduce_scatter_single_coalesced(
        self, outputs: list[torch.Tensor], inputs: list[torch.Tensor], opts: Any = None
    ) -> Work:
        what = "reduce_scatter_tensor_coalesced"
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
                make(
                    _abi.REDUCESCATTER,
                    (used.numel(),),
                    dtype=reducible(used, what),
                    input=used.data_ptr(),
                    output=target.data_ptr(),
                    op=number,
                    splits=[output.numel()] * self._members,
                    output_bytes=memory.size_of(target),
                )
            )

        def finish(_: Any) -> None:
            for output, target, _used in kept:
                memory.give_back(output, target)

        return self._start_all(what, requests, outputs, opts, finish, kept)

    reduce_scatter_tensor_coalesced = reduce_scatter_single_coalesced
