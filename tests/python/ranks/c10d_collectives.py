"""Every collective of torch.distributed with the backend "farandole", on any number of ranks."""

from __future__ import annotations

import os
import warnings
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist

warnings.simplefilter("ignore")  # of functions that PyTorch calls old
dist.init_process_group("farandole")
RANK, SIZE = dist.get_rank(), dist.get_world_size()
NEW = hasattr(dist, "all_gather_into_tensor")
CASES = []


def case(function):
    CASES.append(function)
    return function


def equal(found, expected):
    expected = torch.as_tensor(expected, dtype=found.dtype)
    assert torch.equal(found, expected), f"rank {RANK}: {found} is not {expected}"


@case
def identity():
    assert dist.get_backend() == "farandole"
    assert (int(os.environ["RANK"]), dist.get_world_size()) == (RANK, SIZE)


@case
def all_reduce_types_and_ops():
    total = SIZE * (SIZE + 1) // 2
    for dtype in (
        torch.uint8,
        torch.int8,
        torch.int16,
        torch.int32,
        torch.int64,
        torch.float16,
        torch.bfloat16,
        torch.float32,
        torch.float64,
        torch.complex64,
    ):
        tensor = torch.full((3, 2), RANK + 1, dtype=dtype)
        dist.all_reduce(tensor)
        equal(tensor, torch.full((3, 2), total, dtype=dtype))
    for op, expected in (
        (dist.ReduceOp.MIN, 1),
        (dist.ReduceOp.MAX, SIZE),
        (dist.ReduceOp.AVG, (SIZE + 1) / 2),
    ):
        tensor = torch.tensor(float(RANK + 1))
        dist.all_reduce(tensor, op)
        equal(tensor, expected)
    product = torch.tensor([2])
    dist.all_reduce(product, dist.ReduceOp.PRODUCT)
    equal(product, [2**SIZE])
    for op, expected in (
        (dist.ReduceOp.BAND, 0),
        (dist.ReduceOp.BOR, 2**SIZE - 1),
        (dist.ReduceOp.BXOR, 2**SIZE - 1),
    ):
        bits = torch.tensor([1 << RANK])
        dist.all_reduce(bits, op)
        equal(bits, [expected if op != dist.ReduceOp.BAND or SIZE > 1 else 1])


@case
def all_reduce_shapes():
    for shape in ((), (0,), (1,), (5, 0, 2), (1000, 33)):
        tensor = torch.ones(shape)
        dist.all_reduce(tensor)
        equal(tensor, torch.full(shape, float(SIZE)))
    wide = torch.zeros(4, 6)
    part = wide[:, ::2]
    part += RANK
    dist.all_reduce(part)
    equal(part, torch.full((4, 3), float(sum(range(SIZE)))))
    equal(wide[:, 1::2], torch.zeros(4, 3))


@case
def asynchronous():
    tensors = [torch.full((100,), float(RANK + i)) for i in range(40)]
    works = [dist.all_reduce(each, async_op=True) for each in tensors]
    for i, work in enumerate(works):
        if i % 2:
            work.wait()
        else:
            while not work.is_completed():
                pass
        assert work.is_success()
        equal(tensors[i], torch.full((100,), float(sum(range(SIZE)) + SIZE * i)))
    forgotten = torch.ones(10)
    dist.all_reduce(forgotten, async_op=True)
    dist.barrier()


@case
def futures():
    tensor = torch.full((8,), float(RANK))
    doubled = (
        dist.all_reduce(tensor, async_op=True)
        .get_future()
        .then(lambda future: future.value()[0] * 2)
    )
    equal(doubled.wait(), torch.full((8,), 2.0 * sum(range(SIZE))))
    works = [dist.all_reduce(torch.ones(4), async_op=True) for _ in range(20)]
    for each in torch.futures.collect_all([work.get_future() for work in works]).wait():
        equal(each.wait()[0], torch.full((4,), float(SIZE)))
    work = dist.broadcast(torch.ones(1), 0, async_op=True)
    work.wait()
    assert work.get_future().done()


@case
def sparse():
    index = torch.tensor([[0, RANK + 1]])
    tensor = torch.sparse_coo_tensor(index, torch.ones(2, 3), (SIZE + 2, 3))
    dist.all_reduce(tensor)
    expected = torch.zeros(SIZE + 2, 3)
    expected[0] = SIZE
    expected[1 : SIZE + 1] = 1
    equal(tensor.to_dense(), expected)


@case
def coalesced():
    tensors = [torch.full((i + 1,), float(RANK)) for i in range(5)]
    dist.all_reduce_coalesced(tensors)
    for i, each in enumerate(tensors):
        equal(each, torch.full((i + 1,), float(sum(range(SIZE)))))
    outputs = [[torch.zeros(2), torch.zeros(3)] for _ in range(SIZE)]
    dist.all_gather_coalesced(
        outputs, [torch.full((2,), float(RANK)), torch.full((3,), float(RANK))]
    )
    for i, (two, three) in enumerate(outputs):
        equal(two, [float(i)] * 2)
        equal(three, [float(i)] * 3)


@case
def coalescing_manager():
    from torch.distributed.distributed_c10d import _coalescing_manager

    if "async_ops" not in _coalescing_manager.__wrapped__.__code__.co_varnames:
        return  # 1.13 has another one, for batch_isend_irecv alone
    tensors = [torch.full((i + 1,), float(RANK)) for i in range(3)]
    with _coalescing_manager(async_ops=True) as manager:
        for each in tensors:
            dist.all_reduce(each)
    manager.wait()
    for i, each in enumerate(tensors):
        equal(each, torch.full((i + 1,), float(sum(range(SIZE)))))
    outputs = [torch.zeros(SIZE * 2) for _ in range(3)]
    with _coalescing_manager():
        for each in outputs:
            dist.all_gather_into_tensor(each, torch.full((2,), float(RANK)))
    equal(outputs[2], [float(i // 2) for i in range(2 * SIZE)])
    outputs = [torch.zeros(2) for _ in range(3)]
    with _coalescing_manager():
        for each in outputs:
            dist.reduce_scatter_tensor(each, torch.arange(2.0 * SIZE))
    equal(outputs[1], [2.0 * RANK * SIZE, (2.0 * RANK + 1) * SIZE])


@case
def broadcast_and_reduce():
    for root in range(SIZE):
        for dtype in (torch.bool, torch.float32, torch.int64):
            tensor = torch.tensor([root == RANK, True]).to(dtype)
            dist.broadcast(tensor, root)
            equal(tensor, torch.tensor([True, True]))
        tensor = torch.full((3,), RANK + 1.0)
        dist.reduce(tensor, root)
        if root == RANK:
            equal(tensor, [SIZE * (SIZE + 1) / 2] * 3)
    if hasattr(torch, "float8_e4m3fn"):
        tensor = torch.full((5,), float(RANK)).to(torch.float8_e4m3fn)
        dist.broadcast(tensor, SIZE - 1)
        assert torch.equal(tensor.float(), torch.full((5,), SIZE - 1.0))


@case
def all_gather():
    outputs = [torch.zeros(2, 3) for _ in range(SIZE)]
    dist.all_gather(outputs, torch.full((2, 3), float(RANK)))
    for i, each in enumerate(outputs):
        equal(each, torch.full((2, 3), float(i)))
    uneven = [torch.zeros(i + 1) for i in range(SIZE)]
    dist.all_gather(uneven, torch.full((RANK + 1,), float(RANK)))
    for i, each in enumerate(uneven):
        equal(each, [float(i)] * (i + 1))
    together = torch.zeros(SIZE, 4)
    gather = dist.all_gather_into_tensor if NEW else dist._all_gather_base
    gather(together, torch.full((4,), float(RANK)))
    equal(together, [[float(i)] * 4 for i in range(SIZE)])


@case
def gather_and_scatter():
    for root in range(SIZE):
        outputs = [torch.zeros(3) for _ in range(SIZE)]
        dist.gather(torch.full((3,), float(RANK)), outputs if root == RANK else None, dst=root)
        if root == RANK:
            for i, each in enumerate(outputs):
                equal(each, [float(i)] * 3)
        output = torch.zeros(2, 2)
        inputs = [torch.full((2, 2), float(i)) for i in range(SIZE)] if root == RANK else None
        dist.scatter(output, inputs, src=root)
        equal(output, torch.full((2, 2), float(RANK)))


@case
def reduce_scatter():
    output = torch.zeros(2)
    dist.reduce_scatter(output, [torch.full((2,), float(i)) for i in range(SIZE)])
    equal(output, [float(RANK * SIZE)] * 2)
    output = torch.zeros(RANK + 1)
    dist.reduce_scatter(output, [torch.full((i + 1,), float(i)) for i in range(SIZE)])
    equal(output, [float(RANK * SIZE)] * (RANK + 1))
    output = torch.zeros(3)
    scatter = dist.reduce_scatter_tensor if NEW else dist._reduce_scatter_base
    scatter(output, torch.arange(3.0 * SIZE))
    equal(output, [SIZE * (3.0 * RANK + i) for i in range(3)])


@case
def all_to_all():
    outputs = [torch.zeros(i + 1) for i in range(SIZE)]
    dist.all_to_all(outputs, [torch.full((RANK + 1,), float(RANK)) for _ in range(SIZE)])
    for i, each in enumerate(outputs):
        equal(each, [float(i)] * (i + 1))
    output = torch.zeros(SIZE, 2)
    dist.all_to_all_single(output, torch.arange(2.0 * SIZE).view(SIZE, 2) + 100 * RANK)
    equal(output, [[2.0 * RANK + 100 * i, 2.0 * RANK + 1 + 100 * i] for i in range(SIZE)])
    rows = sum(range(1, SIZE + 1))
    output = torch.zeros(SIZE * (RANK + 1), 2)
    dist.all_to_all_single(
        output, torch.full((rows, 2), float(RANK)), [RANK + 1] * SIZE, list(range(1, SIZE + 1))
    )
    equal(output, [[float(i)] * 2 for i in range(SIZE) for _ in range(RANK + 1)])


@case
def point_to_point():
    after, before = (RANK + 1) % SIZE, (RANK - 1) % SIZE
    if SIZE == 1:
        return
    received = torch.zeros(4)
    sending = dist.isend(torch.full((4,), float(RANK)), after, tag=3)
    assert dist.recv(received, before, tag=3) == before
    sending.wait()
    equal(received, [float(before)] * 4)
    if RANK == 0:
        sources = set()
        for _ in range(SIZE - 1):
            tensor = torch.zeros(2)
            source = dist.recv(tensor, tag=5)
            equal(tensor, [float(source)] * 2)
            sources.add(source)
        assert sources == set(range(1, SIZE))
    else:
        dist.send(torch.full((2,), float(RANK)), 0, tag=5)
    operations = [
        dist.P2POp(dist.isend, torch.full((3,), float(RANK)), after),
        dist.P2POp(dist.irecv, received[:3], before),
    ]
    for work in dist.batch_isend_irecv(operations):
        work.wait()
    equal(received[:3], [float(before)] * 3)


@case
def objects():
    found = [None] * SIZE
    dist.all_gather_object(found, {"rank": RANK, "text": "x" * RANK})
    assert found == [{"rank": i, "text": "x" * i} for i in range(SIZE)], found
    several = [RANK, "from", RANK] if RANK == SIZE - 1 else [None] * 3
    dist.broadcast_object_list(several, src=SIZE - 1)
    assert several == [SIZE - 1, "from", SIZE - 1]
    gathered: Any = [None] * SIZE if RANK == 0 else None
    dist.gather_object(("rank", RANK), gathered, dst=0)
    assert RANK != 0 or gathered == [("rank", i) for i in range(SIZE)]
    mine = [None]
    dist.scatter_object_list(mine, [f"for {i}" for i in range(SIZE)] if RANK == 0 else None, src=0)
    assert mine == [f"for {RANK}"]


@case
def groups():
    evens = dist.new_group(list(range(0, SIZE, 2)))
    odds = dist.new_group(list(range(1, SIZE, 2))) if SIZE > 1 else None
    mine = evens if RANK % 2 == 0 else odds
    members = list(range(RANK % 2, SIZE, 2))
    tensor = torch.tensor([float(RANK)])
    dist.all_reduce(tensor, group=mine)
    equal(tensor, [float(sum(members))])
    tensor = torch.tensor([float(RANK)])
    dist.broadcast(tensor, members[-1], group=mine)
    equal(tensor, [float(members[-1])])
    everybody = dist.new_group(timeout=timedelta(seconds=60))
    work = dist.all_reduce(torch.ones(1000), group=everybody, async_op=True)
    dist.all_reduce(torch.ones(1000))
    work.wait()
    dist.barrier(group=mine)
    dist.destroy_process_group(everybody)


@case
def barriers():
    for _ in range(3):
        dist.barrier()
    work = dist.barrier(async_op=True)
    work.wait()
    dist.monitored_barrier(timeout=timedelta(seconds=60))
    dist.monitored_barrier(timeout=timedelta(seconds=60), wait_all_ranks=True)


@case
def the_store():
    store = torch.distributed.distributed_c10d._get_default_store()
    store.set(f"key{RANK}", f"value{RANK}")
    for i in range(SIZE):
        assert store.get(f"key{i}") == f"value{i}".encode()
    assert store.add("count", 2) >= 2
    dist.barrier()
    assert store.add("count", 0) == 2 * SIZE
    store.wait(["key0"], timedelta(seconds=10))
    dist.barrier()
    if RANK == 0:
        assert store.delete_key("key0")
        store.set("bytes", bytes(range(256)).decode("latin1"))


for each in CASES:
    try:
        each()
    except BaseException:
        print(f"in {each.__name__}:", flush=True)
        raise
dist.destroy_process_group()
print(f"{len(CASES)} cases passed")
