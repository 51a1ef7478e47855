"""broadcast, scatter, gather: one rank has what the others get, or gets what they have."""

from __future__ import annotations

from typing import Any

import torch

from .. import _abi, errors
from ..requests import make
from . import memory
from .dtypes import movable
from .group import Group
from .work import Work


class Rooted(Group):
    """A part of ProcessGroup."""

    def broadcast(self, tensors: Any, opts: Any) -> Work:
        tensor = memory.one(tensors, "broadcast")
        used = memory.dense(tensor, "broadcast")
        dtype, count = movable(used)
        finish = None if used is tensor else lambda _: memory.give_back(tensor, used)
        return self._start(
            "broadcast",
            make(
                _abi.BROADCAST,
                (count,),
                dtype=dtype,
                input=used.data_ptr(),
                output=used.data_ptr(),
                root=self._root(opts),
            ),
            tensors,
            opts,
            finish,
            used,
        )

    def scatter(self, output_tensors: Any, input_tensors: Any, opts: Any) -> Work:
        output = memory.one(output_tensors, "scatter")
        root = self._root(opts)
        dtype, count = movable(output)
        parts = None
        if root == self._ranks[self._me]:
            inputs = memory.one(input_tensors, "scatter")
            self._check_list(inputs, "scatter")
            memory.check_same(inputs, output, "scatter")
            for each in inputs:
                if each.numel() != output.numel():
                    raise errors.InvalidArgument(
                        f"scatter: a part has {each.numel()} elements, the output {output.numel()}"
                    )
            parts = memory.pack(inputs)

        # The root decides the sizes of the parts: they are checked before anything is written.
        def finish(result: Any) -> None:
            memory.take("scatter", result(0).bytes(), output)

        address = 0 if parts is None else parts.data_ptr()
        return self._start(
            "scatter",
            make(_abi.SCATTER, (self._members, count), dtype=dtype, input=address, root=root),
            output_tensors,
            opts,
            finish,
            parts,
        )

    def gather(self, output_tensors: Any, input_tensors: Any, opts: Any) -> Work:
        tensor = memory.one(input_tensors, "gather")
        used = memory.dense(tensor, "gather")
        root = self._root(opts)
        dtype, count = movable(used)
        if root != self._ranks[self._me]:
            return self._start(
                "gather",
                make(_abi.GATHER, (1, count), dtype=dtype, input=used.data_ptr(), root=root),
                output_tensors,
                opts,
                None,
                used,
            )
        outputs = memory.one(output_tensors, "gather")
        self._check_list(outputs, "gather", used)
        together = torch.empty(self._members * used.numel(), dtype=used.dtype)
        return self._start(
            "gather",
            make(
                _abi.GATHER,
                (1, count),
                dtype=dtype,
                input=used.data_ptr(),
                output=together.data_ptr(),
                root=root,
                output_bytes=memory.size_of(together),
            ),
            output_tensors,
            opts,
            lambda _: memory.unpack(together, outputs),
            (used, together),
        )

    def gather_single(self, output: torch.Tensor, input: torch.Tensor, opts: Any) -> Work:
        mine = self._root(opts) == self._ranks[self._me]
        outputs = [list(output.view(self._members, -1).unbind(0))] if mine else []
        return self.gather(outputs, [input.reshape(-1) if mine else input], opts)

    gather_into_tensor = gather_single
