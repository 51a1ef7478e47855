"""all_gather, in all its forms."""

from __future__ import annotations

from typing import Any

import torch

from .. import _abi, errors
from ..requests import make
from . import memory
from .dtypes import movable
from .group import Group
from .work import Work


class Gathering(Group):
    """A part of ProcessGroup."""

    def allgather(
        self, output_tensors: Any, input_tensors: Any, opts: Any = None, timeout: Any = None
    ) -> Work:
        if isinstance(input_tensors, torch.Tensor):
            output_tensors, input_tensors = [output_tensors], [input_tensors]
        tensor = memory.one(input_tensors, "all_gather")
        outputs = memory.one(output_tensors, "all_gather")
        used = memory.dense(tensor, "all_gather")
        self._check_list(outputs, "all_gather")
        memory.check_same(outputs, used, "all_gather")
        dtype, count = movable(used)
        if all(each.numel() == used.numel() for each in outputs):
            # (1, count): what may differ between ranks does not, what must agree is checked.
            together = torch.empty(self._members * used.numel(), dtype=used.dtype)
            return self._start(
                "all_gather",
                make(
                    _abi.ALLGATHER,
                    (1, count),
                    dtype=dtype,
                    input=used.data_ptr(),
                    output=together.data_ptr(),
                    output_bytes=memory.size_of(together),
                ),
                output_tensors,
                opts,
                lambda _: memory.unpack(together, outputs),
                (used, together),
            )

        def finish(result: Any) -> None:
            memory.take_parts("all_gather", result(0), outputs)

        return self._start(
            "all_gather",
            make(_abi.ALLGATHER, (count,), dtype=dtype, input=used.data_ptr()),
            output_tensors,
            opts,
            finish,
            used,
        )

    def all_gather_single(
        self, output: torch.Tensor, input: torch.Tensor, opts: Any = None
    ) -> Work:
        used, target = self._gathered(output, input)
        dtype, count = movable(used)
        finish = None if target is output else lambda _: memory.give_back(output, target)
        return self._start(
            "all_gather_into_tensor",
            make(
                _abi.ALLGATHER,
                (1, count),
                dtype=dtype,
                input=used.data_ptr(),
                output=target.data_ptr(),
                output_bytes=memory.size_of(target),
            ),
            [output],
            opts,
            finish,
            (used, target),
        )

    _allgather_base = all_gather_single

    def _gathered(self, output: torch.Tensor, input: torch.Tensor) -> Any:
        what = "all_gather_into_tensor"
        memory.check_same([output], input, what)
        if output.numel() != input.numel() * self._members:
            raise errors.InvalidArgument(
                f"{what}: {self._members} times {input.numel()} elements do not fit an output of "
                f"{output.numel()}"
            )
        target = output if memory.usable(output) else torch.empty(output.shape, dtype=output.dtype)
        return memory.dense(input, what), target

    def _gather_request(self, used: torch.Tensor, target: torch.Tensor) -> _abi.Request:
        """One of several gathers that make a work together."""
        dtype, count = movable(used)
        return make(
            _abi.ALLGATHER,
            (1, count),
            dtype=dtype,
            input=used.data_ptr(),
            output=target.data_ptr(),
            output_bytes=memory.size_of(target),
        )

    def all_gather_single_coalesced(
        self, outputs: list[torch.Tensor], inputs: list[torch.Tensor], opts: Any = None
    ) -> Work:
        pairs = [self._gathered(output, input) for output, input in zip(outputs, inputs)]
        requests = [self._gather_request(used, target) for used, target in pairs]

        def finish(_: Any) -> None:
            for output, (_used, target) in zip(outputs, pairs):
                memory.give_back(output, target)

        return self._start_all(
            "all_gather_into_tensor_coalesced", requests, outputs, opts, finish, pairs
        )

    allgather_into_tensor_coalesced = all_gather_single_coalesced

    def allgather_coalesced(
        self,
        output_lists: list[list[torch.Tensor]],
        input_list: list[torch.Tensor],
        opts: Any = None,
    ) -> Work:
        """output_lists[rank][i] receives that rank's i-th input."""
        self._check_list(output_lists, "all_gather_coalesced")
        requests, targets, inputs = [], [], []
        for i, tensor in enumerate(input_list):
            outputs = [each[i] for each in output_lists]
            self._check_list(outputs, "all_gather_coalesced", tensor)
            used = memory.dense(tensor, "all_gather_coalesced")
            target = torch.empty(self._members * used.numel(), dtype=used.dtype)
            requests.append(self._gather_request(used, target))
            inputs.append(used)
            targets.append((target, outputs))

        def finish(_: Any) -> None:
            for target, outputs in targets:
                memory.unpack(target, outputs)

        return self._start_all(
            "all_gather_coalesced", requests, output_lists, opts, finish, (inputs, targets)
        )
