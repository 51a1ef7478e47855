"""The process group: every collective that torch.distributed knows, over a process set of its own.

A set of its own, so that what a script does with Farandole beside torch.distributed never gets into
the order of its calls. Python calls these methods directly; C++ (DDP's reducer, functional collectives)
reaches those that the installed version of PyTorch forwards to Python.
"""

from __future__ import annotations

import ctypes
from datetime import timedelta
from typing import Any, Dict, List, Optional, Sequence

import torch
from torch._C import _distributed_c10d as _c10d
from torch.distributed import distributed_c10d

from .. import _abi, core, errors
from . import memory
from .completions import completions
from .monitored_barrier import monitored_barrier
from .dtypes import movable, reducible, reduction
from .work import Done, Finish, Work, run

_REQUEST_BYTES = ctypes.sizeof(_abi.Request)
_shapes: Dict[Sequence[int], Any] = {}


def _shape_array(shape: Sequence[int]) -> Any:
    """The library copies it; the same few shapes come again and again."""
    found = _shapes.get(shape)
    if found is None:
        if len(_shapes) > 4096:
            _shapes.clear()
        found = _shapes[shape] = (ctypes.c_int64 * len(shape))(*shape)
    return found


class ProcessGroup(_c10d.ProcessGroup):
    """Made by torch.distributed.init_process_group("farandole") and new_group()."""

    def __init__(self, rank: int, size: int, ranks: Sequence[int], timeout: timedelta) -> None:
        super().__init__(rank, size)
        self._ranks = list(ranks)
        self._me = rank
        self._group_name = self._group_text = ""
        self._made = False
        self._members = size
        self._limit = timeout.total_seconds()
        self._home = completions()
        self._done = Done(self._home, "done", [])
        library = _abi.library()
        number = ctypes.c_int32()
        array = (ctypes.c_int32 * size)(*self._ranks)
        _abi.check(library.add_set(array, size, ctypes.byref(number)))
        self._set = number.value
        self._generation = core.generation()

    # ---- What a process group is asked about itself.

    def rank(self) -> int:
        return self._me

    def size(self) -> int:
        return self._members

    def name(self) -> str:
        return "farandole"

    # C++ asks for these by the names of its own methods.
    getBackendName = _get_backend_name = name
    getRank = rank
    getSize = size

    def setGroupName(self, name: str) -> None:
        self._group_name = name

    def getGroupName(self) -> str:
        return self._group_name

    def setGroupDesc(self, text: str) -> None:
        self._group_text = text

    def getGroupDesc(self) -> str:
        return self._group_text

    @property
    def _device_types(self) -> List[torch.device]:
        """Nothing while the group is being made: the flight recorder of PyTorch must not attach itself,
        because it knows only groups whose backends are C++."""
        if not self._made:
            world = getattr(distributed_c10d, "_world", None)
            self._made = world is None or self in world.pg_map
        return [torch.device("cpu")] if self._made else []

    # Newer versions ask what a backend can do beyond collectives.
    supports_coalescing = supports_splitting = supports_shrinking = False
    supports_reconfigure = supports_window = supports_abort_hooks = False
    _supports_time_estimate = False

    def get_backend(self, device: Any = None) -> "ProcessGroup":
        return self

    _get_backend = get_backend

    def _set_sequence_number_for_group(self) -> None:
        pass

    def _get_sequence_number_for_group(self) -> int:
        return 0

    def _start_coalescing(self, device: Any = None) -> None:
        """Operations are fused by the conductor anyway."""

    def _end_coalescing(self, *_: Any) -> Work:
        return Done(self._home, "coalescing", [])

    def set_timeout(self, timeout: timedelta) -> None:
        self._limit = timeout.total_seconds()

    _set_default_timeout = set_timeout

    def shutdown(self) -> None:
        """The set is forgotten; operations still in flight keep it until the end of the job."""
        if self._set and core.is_initialised() and core.generation() == self._generation:
            _abi.library().remove_set(self._set)
        self._set = 0

    abort = shutdown

    # ---- Starting operations.

    def _request(self, queue: Optional[int], tag: int, operation: int, dtype: int, shape: Sequence[int], input: int,
                 output: int, reduce: int = 0, root: int = 0, flags: int = 0, p2p: int = 0,
                 splits: Optional[Sequence[int]] = None, group: int = 0) -> Any:
        parts = None if splits is None else _shape_array(tuple(splits))
        return _abi.Request(
            _REQUEST_BYTES, operation, dtype, reduce, root, self._set, flags, p2p, None, input,
            output, _shape_array(shape), len(shape), 0 if splits is None else len(splits), parts, 1.0,
            1.0, group, None, None, None, None, queue, tag)

    def _start(self, name: str, operation: int, dtype: int, shape: Sequence[int], input: int,
               output: int, result: Sequence[Any], opts: Any = None, finish: Optional[Finish] = None,
               keep: Any = None, reduce: int = 0, root: int = 0, p2p: int = 0,
               splits: Optional[Sequence[int]] = None) -> Work:
        if self._set == 0:
            raise errors.NotInitialised(f"{name}: this process group has been destroyed")
        home = self._home
        if opts is not None and not getattr(opts, "asyncOp", True):
            # The caller waits at once: nothing has to be kept for anybody else.
            request = self._request(None, 0, operation, dtype, shape, input, output, reduce, root,
                                    _abi.FLAG_WILL_WAIT, p2p, splits)
            run(home, name, request, self._limit_of(opts), finish, (result, keep))
            return self._done
        work = Work(home, name, result, self._limit_of(opts), finish, keep)
        work._tag = tag = next(home.tags)
        request = self._request(home.queue, tag, operation, dtype, shape, input, output, reduce, root,
                                0, p2p, splits)
        work._start(ctypes.byref(request), 1)
        home.started_one()
        return work

    def _start_all(self, name: str, requests: List[Any], result: Sequence[Any], opts: Any,
                   finish: Optional[Finish], keep: Any, tag: int) -> Work:
        """Several operations as one work."""
        if not requests:
            return Done(self._home, name, result)
        work = Work(self._home, name, result, self._limit_of(opts), finish, keep)
        work._tag = tag
        array = (_abi.Request * len(requests))(*requests)
        work._start(array, len(requests))
        self._home.started_one()
        return work

    def _limit_of(self, opts: Any) -> float:
        if opts is None:
            return self._limit
        timeout = getattr(opts, "timeout", None)  # `opts` may be a bare ReduceOp
        seconds = 0 if timeout is None else timeout.total_seconds()
        return seconds if seconds > 0 else self._limit

    def _root(self, opts: Any) -> int:
        root = opts.rootRank
        if not 0 <= root < self._members:
            raise errors.InvalidArgument(
                f"there is no rank {root} in this group of {self._members}")
        return self._ranks[root]

    # ---- allreduce, reduce.

    def allreduce(self, tensors: Any, opts: Any = None, timeout: Any = None) -> Work:
        if isinstance(tensors, torch.Tensor):
            tensors = [tensors]
        tensor = memory.one(tensors, "all_reduce")
        if tensor.layout != torch.strided:
            from .sparse import allreduce_sparse

            return allreduce_sparse(self, tensor, opts)
        used = memory.dense(tensor, "all_reduce")
        address = used.data_ptr()
        finish = None if used is tensor else lambda _: memory.give_back(tensor, used)
        return self._start(
            "all_reduce", _abi.ALLREDUCE, reducible(used, "all_reduce"), used.shape, address, address,
            tensors, opts, finish, used, _reduce_op(opts))

    def allreduce_coalesced(self, tensors: List[torch.Tensor], opts: Any = None) -> Work:
        used = [memory.dense(each, "all_reduce_coalesced") for each in tensors]
        number = _reduce_op(opts)
        tag = next(self._home.tags)
        requests = [
            self._request(self._home.queue, tag, _abi.ALLREDUCE, reducible(each, "all_reduce_coalesced"), each.shape,
                          each.data_ptr(), each.data_ptr(), number, group=1)
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
            "reduce", _abi.REDUCE, reducible(used, "reduce"), used.shape, used.data_ptr(),
            used.data_ptr() if mine else 0, tensors, opts, finish, used, _reduce_op(opts), root)

    # ---- broadcast, scatter, gather.

    def broadcast(self, tensors: Any, opts: Any) -> Work:
        tensor = memory.one(tensors, "broadcast")
        used = memory.dense(tensor, "broadcast")
        dtype, count = movable(used)
        finish = None if used is tensor else lambda _: memory.give_back(tensor, used)
        return self._start(
            "broadcast", _abi.BROADCAST, dtype, (count,), used.data_ptr(), used.data_ptr(), tensors,
            opts, finish, used, root=self._root(opts))

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
                        f"scatter: a part has {each.numel()} elements, the output {output.numel()}")
            parts = memory.pack(inputs)

        # The parts' size is the root's to say: it is looked at before anything is written.
        def finish(result: Any) -> None:
            _take("scatter", result(0).bytes(), output)

        address = 0 if parts is None else parts.data_ptr()
        return self._start("scatter", _abi.SCATTER, dtype, (self._members, count), address, 0,
                           output_tensors, opts, finish, parts, root=root)

    def gather(self, output_tensors: Any, input_tensors: Any, opts: Any) -> Work:
        tensor = memory.one(input_tensors, "gather")
        used = memory.dense(tensor, "gather")
        root = self._root(opts)
        dtype, count = movable(used)
        if root != self._ranks[self._me]:
            return self._start("gather", _abi.GATHER, dtype, (1, count), used.data_ptr(), 0,
                               output_tensors, opts, None, used, root=root)
        outputs = memory.one(output_tensors, "gather")
        self._check_list(outputs, "gather", used)
        together = torch.empty(self._members * used.numel(), dtype=used.dtype)
        return self._start(
            "gather", _abi.GATHER, dtype, (1, count), used.data_ptr(), together.data_ptr(),
            output_tensors, opts, lambda _: memory.unpack(together, outputs), (used, together),
            root=root)

    def gather_single(self, output: torch.Tensor, input: torch.Tensor, opts: Any) -> Work:
        mine = self._root(opts) == self._ranks[self._me]
        outputs = [list(output.view(self._members, -1).unbind(0))] if mine else []
        return self.gather(outputs, [input.reshape(-1) if mine else input], opts)

    gather_into_tensor = gather_single

    # ---- allgather.

    def allgather(self, output_tensors: Any, input_tensors: Any, opts: Any = None,
                  timeout: Any = None) -> Work:
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
                "all_gather", _abi.ALLGATHER, dtype, (1, count), used.data_ptr(), together.data_ptr(),
                output_tensors, opts, lambda _: memory.unpack(together, outputs), (used, together))

        def finish(result: Any) -> None:
            _take_parts("all_gather", result(0), outputs)

        return self._start("all_gather", _abi.ALLGATHER, dtype, (count,), used.data_ptr(), 0,
                           output_tensors, opts, finish, used)

    def all_gather_single(self, output: torch.Tensor, input: torch.Tensor, opts: Any = None) -> Work:
        used, target = self._gathered(output, input)
        dtype, count = movable(used)
        finish = None if target is output else lambda _: memory.give_back(output, target)
        return self._start("all_gather_into_tensor", _abi.ALLGATHER, dtype, (1, count),
                           used.data_ptr(), target.data_ptr(), [output], opts, finish, (used, target))

    _allgather_base = all_gather_single

    def _gathered(self, output: torch.Tensor, input: torch.Tensor) -> Any:
        what = "all_gather_into_tensor"
        memory.check_same([output], input, what)
        if output.numel() != input.numel() * self._members:
            raise errors.InvalidArgument(
                f"{what}: {self._members} times {input.numel()} elements do not fit an output of "
                f"{output.numel()}")
        target = output if _usable(output) else torch.empty(output.shape, dtype=output.dtype)
        return memory.dense(input, what), target

    def all_gather_single_coalesced(self, outputs: List[torch.Tensor], inputs: List[torch.Tensor],
                                    opts: Any = None) -> Work:
        tag = next(self._home.tags)
        pairs = [self._gathered(output, input) for output, input in zip(outputs, inputs)]
        requests = []
        for used, target in pairs:
            dtype, count = movable(used)
            requests.append(self._request(self._home.queue, tag, _abi.ALLGATHER, dtype, (1, count), used.data_ptr(),
                                          target.data_ptr()))

        def finish(_: Any) -> None:
            for output, (_used, target) in zip(outputs, pairs):
                memory.give_back(output, target)

        return self._start_all("all_gather_into_tensor_coalesced", requests, outputs, opts, finish,
                               pairs, tag)

    allgather_into_tensor_coalesced = all_gather_single_coalesced

    def allgather_coalesced(self, output_lists: List[List[torch.Tensor]],
                            input_list: List[torch.Tensor], opts: Any = None) -> Work:
        """output_lists[rank][i] receives that rank's i-th input."""
        self._check_list(output_lists, "all_gather_coalesced")
        tag = next(self._home.tags)
        requests, targets, inputs = [], [], []
        for i, tensor in enumerate(input_list):
            outputs = [each[i] for each in output_lists]
            self._check_list(outputs, "all_gather_coalesced", tensor)
            used = memory.dense(tensor, "all_gather_coalesced")
            target = torch.empty(self._members * used.numel(), dtype=used.dtype)
            dtype, count = movable(used)
            requests.append(self._request(self._home.queue, tag, _abi.ALLGATHER, dtype, (1, count), used.data_ptr(),
                                          target.data_ptr()))
            inputs.append(used)
            targets.append((target, outputs))

        def finish(_: Any) -> None:
            for target, outputs in targets:
                memory.unpack(target, outputs)

        return self._start_all("all_gather_coalesced", requests, output_lists, opts, finish,
                               (inputs, targets), tag)

    # ---- reduce_scatter.

    def reduce_scatter(self, output_tensors: Any, input_tensors: Any, opts: Any = None,
                       timeout: Any = None) -> Work:
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
                f"{counts[self._me]}")
        packed = memory.pack(inputs)
        return self._reduce_scatter(what, output, packed, counts, output_tensors, opts)

    def reduce_scatter_single(self, output: torch.Tensor, input: torch.Tensor,
                              opts: Any = None) -> Work:
        what = "reduce_scatter_tensor"
        self._check_scattered(what, output, input)
        used = memory.dense(input, what)
        return self._reduce_scatter(what, output, used, [output.numel()] * self._members, [output],
                                    opts)

    _reduce_scatter_base = reduce_scatter_single

    def _check_scattered(self, what: str, output: torch.Tensor, input: torch.Tensor) -> None:
        memory.check_same([output], input, what)
        if input.numel() != output.numel() * self._members:
            raise errors.InvalidArgument(
                f"{what}: an input of {input.numel()} elements is not {self._members} times the "
                f"output's {output.numel()}")

    def _reduce_scatter(self, what: str, output: torch.Tensor, packed: torch.Tensor,
                        counts: Sequence[int], result: Any, opts: Any) -> Work:
        target = output if _usable(output) else torch.empty(output.shape, dtype=output.dtype)
        finish = None if target is output else lambda _: memory.give_back(output, target)
        return self._start(
            what, _abi.REDUCESCATTER, reducible(packed, what), (packed.numel(),), packed.data_ptr(),
            target.data_ptr(), result, opts, finish, (packed, target), _reduce_op(opts),
            splits=counts)

    def reduce_scatter_single_coalesced(self, outputs: List[torch.Tensor],
                                        inputs: List[torch.Tensor], opts: Any = None) -> Work:
        what = "reduce_scatter_tensor_coalesced"
        tag = next(self._home.tags)
        number = _reduce_op(opts)
        requests, kept = [], []
        for output, input in zip(outputs, inputs):
            self._check_scattered(what, output, input)
            used = memory.dense(input, what)
            target = output if _usable(output) else torch.empty(output.shape, dtype=output.dtype)
            kept.append((output, target, used))
            requests.append(self._request(
                self._home.queue, tag, _abi.REDUCESCATTER, reducible(used, what), (used.numel(),), used.data_ptr(),
                target.data_ptr(), number, splits=[output.numel()] * self._members))

        def finish(_: Any) -> None:
            for output, target, _used in kept:
                memory.give_back(output, target)

        return self._start_all(what, requests, outputs, opts, finish, kept, tag)

    reduce_scatter_tensor_coalesced = reduce_scatter_single_coalesced

    # ---- alltoall.

    def all_to_all_single(self, output: torch.Tensor, input: torch.Tensor, output_splits: Any,
                          input_splits: Any, opts: Any = None) -> Work:
        what = "all_to_all_single"
        memory.check_same([output], input, what)
        used = memory.dense(input, what)
        sent = self._parts(what, used, input_splits)
        received = self._parts(what, output, output_splits)
        return self._alltoall(what, used, sent, received, [output], [output], opts)

    alltoall_base = all_to_all_single

    def _parts(self, what: str, tensor: torch.Tensor, splits: Any) -> List[int]:
        """Elements for each member, from rows of the first dimension."""
        rows = tensor.shape[0] if tensor.dim() else 1
        width = tensor.numel() // rows if rows else 0
        if splits:
            if len(splits) != self._members or sum(splits) != rows:
                raise errors.InvalidArgument(
                    f"{what}: splits {list(splits)} do not divide {rows} rows among "
                    f"{self._members} ranks")
            return [each * width for each in splits]
        if rows % self._members:
            raise errors.InvalidArgument(
                f"{what}: {rows} rows cannot be divided equally among {self._members} ranks")
        return [rows // self._members * width] * self._members

    def alltoall(self, output_tensors: List[torch.Tensor], input_tensors: List[torch.Tensor],
                 opts: Any = None) -> Work:
        what = "all_to_all"
        self._check_list(input_tensors, what)
        self._check_list(output_tensors, what)
        memory.check_same(list(input_tensors) + list(output_tensors), input_tensors[0], what)
        packed = memory.pack(input_tensors)
        return self._alltoall(what, packed, memory.counts(input_tensors),
                              memory.counts(output_tensors), output_tensors, output_tensors, opts)

    def _alltoall(self, what: str, packed: torch.Tensor, sent: Sequence[int],
                  received: Sequence[int], outputs: Sequence[torch.Tensor], result: Any,
                  opts: Any) -> Work:
        dtype, count = movable(packed)
        scale = count // packed.numel() if packed.numel() else 1

        # How much comes is the others' to say: it is looked at before anything is written.
        def finish(result: Any) -> None:
            done = result(0)
            expected = [each * scale for each in received]
            if done.splits and done.splits != expected:
                raise errors.Mismatch(
                    f"{what}: rank {self._ranks[self._me]} expects {expected} elements from the "
                    f"members of its group, they sent {done.splits}: output and input splits must fit")
            data = done.bytes()
            if len(outputs) == 1:
                _take(what, data, outputs[0])
            else:
                memory.unpack(data.view(outputs[0].dtype) if data.numel() else
                              torch.empty(0, dtype=outputs[0].dtype), outputs)

        return self._start(what, _abi.ALLTOALL, dtype, (count,), packed.data_ptr(), 0, result, opts,
                           finish, packed, splits=[each * scale for each in sent])

    # ---- Point to point.

    def send(self, tensors: Any, dst: int, tag: int = 0) -> Work:
        used = memory.dense(memory.one(tensors, "send"), "send")
        dtype, count = movable(used)
        return self._start("send", _abi.SEND, dtype, (count,), used.data_ptr(), 0, tensors, None,
                           None, used, root=self._ranks[dst], p2p=tag)

    def recv(self, tensors: Any, src: int, tag: int = 0) -> Work:
        return self._recv(tensors, self._ranks[src], tag, "recv")

    def recv_anysource(self, tensors: Any, tag: int = 0) -> Work:
        return self._recv(tensors, _abi.ANY_RANK, tag, "recv from any rank")

    def _recv(self, tensors: Any, peer: int, tag: int, what: str) -> Work:
        tensor = memory.one(tensors, what)
        used = tensor if _usable(tensor) else torch.empty(tensor.shape, dtype=tensor.dtype)
        dtype, count = movable(used)
        holder: List[Work] = []

        def finish(result: Any) -> None:
            memory.give_back(tensor, used)
            holder[0]._source = self._ranks.index(result(0).info.source)
            holder.clear()

        home = self._home
        work = Work(home, what, tensors, self._limit, finish, used)
        holder.append(work)
        work._tag = next(home.tags)
        request = self._request(home.queue, work._tag, _abi.RECV, dtype, (count,), 0, used.data_ptr(), root=peer,
                                p2p=tag)
        work._start(ctypes.byref(request), 1)
        home.started_one()
        return work

    # ---- barriers.

    def barrier(self, opts: Any = None, timeout: Any = None) -> Work:
        return self._start("barrier", _abi.BARRIER, 0, (), 0, 0, [], opts)

    def monitored_barrier(self, timeout: Optional[timedelta] = None,
                          wait_all_ranks: bool = False) -> None:
        seconds = self._limit if timeout is None else timeout.total_seconds()
        monitored_barrier(self, seconds, wait_all_ranks)

    # ---- What is common.

    def _check_list(self, tensors: Sequence[Any], what: str,
                    like: Optional[torch.Tensor] = None) -> None:
        if len(tensors) != self._members:
            raise errors.InvalidArgument(
                f"{what}: a list of {len(tensors)} tensors for a group of {self._members} ranks")
        if like is None:
            return
        memory.check_same(tensors, like, what)
        for each in tensors:
            if each.numel() != like.numel():
                raise errors.InvalidArgument(
                    f"{what}: an output has {each.numel()} elements, the input {like.numel()}")


def _reduce_op(opts: Any) -> int:
    if opts is None:
        return 0
    return reduction(getattr(opts, "reduceOp", opts))


def _usable(tensor: torch.Tensor) -> bool:
    return (tensor.device.type == "cpu" and tensor.layout == torch.strided
            and tensor.is_contiguous())


def _take(what: str, data: torch.Tensor, output: torch.Tensor) -> None:
    """Copies the library's bytes into a tensor of exactly that size."""
    expected = output.numel() * output.element_size()
    if data.numel() != expected:
        raise errors.Mismatch(
            f"{what}: {data.numel()} bytes arrived for an output of {expected}: the tensors of the "
            "ranks do not fit")
    if expected:
        output.detach().copy_(data.view(output.dtype).view(output.shape))


def _take_parts(what: str, result: Any, outputs: Sequence[torch.Tensor]) -> None:
    """As _take, one part for each rank."""
    expected = [each.numel() for each in outputs]
    if result.splits != expected:
        raise errors.Mismatch(
            f"{what}: the ranks sent {result.splits} elements, the outputs have {expected}")
    data = result.bytes()
    if data.numel():
        memory.unpack(data.view(outputs[0].dtype), outputs)
