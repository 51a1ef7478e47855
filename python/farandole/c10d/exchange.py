"""all_to_all, send, recv: data from one rank to another."""

from __future__ import annotations

from typing import Any, Sequence

import torch

from .. import _abi, errors
from ..requests import make
from . import memory
from .dtypes import movable
from .group import Group
from .work import Work


class Exchange(Group):
    """A part of ProcessGroup."""

    def all_to_all_single(
        self,
        output: torch.Tensor,
        input: torch.Tensor,
        output_splits: Any,
        input_splits: Any,
        opts: Any = None,
    ) -> Work:
        what = "all_to_all_single"
        memory.check_same([output], input, what)
        used = memory.dense(input, what)
        sent = self._parts(what, used, input_splits)
        received = self._parts(what, output, output_splits)
        return self._alltoall(what, used, sent, received, [output], [output], opts)

    alltoall_base = all_to_all_single

    def _parts(self, what: str, tensor: torch.Tensor, splits: Any) -> list[int]:
        """Elements for each member, from rows of the first dimension."""
        rows = tensor.shape[0] if tensor.dim() else 1
        width = tensor.numel() // rows if rows else 0
        if splits:
            if len(splits) != self._members or sum(splits) != rows:
                raise errors.InvalidArgument(
                    f"{what}: splits {list(splits)} do not divide {rows} rows among "
                    f"{self._members} ranks"
                )
            return [each * width for each in splits]
        if rows % self._members:
            raise errors.InvalidArgument(
                f"{what}: {rows} rows cannot be divided equally among {self._members} ranks"
            )
        return [rows // self._members * width] * self._members

    def alltoall(
        self,
        output_tensors: list[torch.Tensor],
        input_tensors: list[torch.Tensor],
        opts: Any = None,
    ) -> Work:
        what = "all_to_all"
        self._check_list(input_tensors, what)
        self._check_list(output_tensors, what)
        memory.check_same(list(input_tensors) + list(output_tensors), input_tensors[0], what)
        packed = memory.pack(input_tensors)
        return self._alltoall(
            what,
            packed,
            memory.counts(input_tensors),
            memory.counts(output_tensors),
            output_tensors,
            output_tensors,
            opts,
        )

    def _alltoall(
        self,
        what: str,
        packed: torch.Tensor,
        sent: Sequence[int],
        received: Sequence[int],
        outputs: Sequence[torch.Tensor],
        result: Any,
        opts: Any,
    ) -> Work:
        dtype, count = movable(packed)
        scale = count // packed.numel() if packed.numel() else 1

        # The other ranks decide the size: it is checked before anything is written.
        def finish(result: Any) -> None:
            done = result(0)
            expected = [each * scale for each in received]
            if done.splits and done.splits != expected:
                raise errors.Mismatch(
                    f"{what}: rank {self._ranks[self._me]} expects {expected} elements from the "
                    f"members of its group, they sent {done.splits}: the splits must fit"
                )
            data = done.bytes()
            if len(outputs) == 1:
                memory.take(what, data, outputs[0])
            else:
                memory.unpack(
                    data.view(outputs[0].dtype)
                    if data.numel()
                    else torch.empty(0, dtype=outputs[0].dtype),
                    outputs,
                )

        return self._start(
            what,
            make(
                _abi.ALLTOALL,
                (count,),
                dtype=dtype,
                input=packed.data_ptr(),
                splits=[each * scale for each in sent],
            ),
            result,
            opts,
            finish,
            packed,
        )

    def send(self, tensors: Any, dst: int, tag: int = 0) -> Work:
        used = memory.dense(memory.one(tensors, "send"), "send")
        dtype, count = movable(used)
        return self._start(
            "send",
            make(
                _abi.SEND,
                (count,),
                dtype=dtype,
                input=used.data_ptr(),
                root=self._ranks[dst],
                tag=tag,
            ),
            tensors,
            None,
            None,
            used,
        )

    def recv(self, tensors: Any, src: int, tag: int = 0) -> Work:
        return self._recv(tensors, self._ranks[src], tag, "recv")

    def recv_anysource(self, tensors: Any, tag: int = 0) -> Work:
        return self._recv(tensors, _abi.ANY_RANK, tag, "recv from any rank")

    def _recv(self, tensors: Any, peer: int, tag: int, what: str) -> Work:
        tensor = memory.one(tensors, what)
        used = tensor if memory.usable(tensor) else torch.empty(tensor.shape, dtype=tensor.dtype)
        dtype, count = movable(used)
        holder: list[Work] = []

        def finish(result: Any) -> None:
            memory.give_back(tensor, used)
            holder[0]._source = self._ranks.index(result(0).info.source)
            holder.clear()

        self._check_usable(what)
        work = Work(self._home, what, tensors, self._limit, finish, used)
        holder.append(work)
        request = make(
            _abi.RECV,
            (count,),
            dtype=dtype,
            output=used.data_ptr(),
            output_bytes=memory.size_of(used),
            root=peer,
            tag=tag,
        )
        return self._launch(work, request)
