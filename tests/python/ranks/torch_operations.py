"""farandole.torch: collective operations in all their forms, on any number of ranks."""

from __future__ import annotations

import subprocess

import torch
import torch.utils.data

import cases
import farandole.torch as hvd
from cases import raises
from farandole import errors

torch.set_num_threads(1)
with raises(ValueError, "init()"):
    hvd.size()
with raises(ValueError, "init()"):
    hvd.allreduce(torch.ones(1))
assert hvd.gloo_built() and not hvd.mpi_built() and hvd.nccl_built() == 0

hvd.init()
RANK, SIZE = hvd.rank(), hvd.size()
RANKS = range(SIZE)
FLOATS = [torch.float16, torch.bfloat16, torch.float32, torch.float64]
INTEGERS = [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64]


def same(got, expected):
    expected = torch.as_tensor(expected)
    assert got.shape == expected.shape, (got.shape, expected.shape)
    assert torch.equal(got.double(), expected.double()), (got, expected)


def case_allreduce_dtypes():
    for dtype in FLOATS + INTEGERS:
        data = (torch.arange(6).view(2, 3) + RANK).to(dtype)
        expected = sum(torch.arange(6).view(2, 3) + r for r in RANKS)
        got = hvd.allreduce(data, op=hvd.Sum)
        assert got.dtype == dtype
        same(got, expected)
        same(hvd.allreduce(data, op=hvd.Max), torch.arange(6).view(2, 3) + SIZE - 1)
        same(hvd.allreduce(data, op=hvd.Min), torch.arange(6).view(2, 3))
        got = hvd.allreduce(data)
        exact = expected.double() / SIZE
        same(got, exact.to(dtype) if dtype in FLOATS else exact.trunc())
    same(hvd.allreduce(torch.full((2,), 2.0), op=hvd.Product), [2.0**SIZE] * 2)
    same(hvd.allreduce(torch.tensor([RANK == 0]), op=hvd.Max), [True])
    got = hvd.allreduce(torch.tensor([1 + 1j]), op=hvd.Sum)
    assert got.item() == SIZE * (1 + 1j)
    conjugate = hvd.allreduce(torch.tensor([1 + 1j]).conj(), op=hvd.Sum)
    assert conjugate.item() == SIZE * (1 - 1j)


def case_allreduce_forms():
    data = torch.full((3,), float(RANK))
    mean = (SIZE - 1) / 2
    same(hvd.allreduce(data, average=True), [mean] * 3)
    same(hvd.allreduce(data, average=False), [mean * SIZE] * 3)
    with raises(ValueError, "op"):
        hvd.allreduce(data, average=True, op=hvd.Sum)
    scaled = hvd.allreduce(data, op=hvd.Sum, prescale_factor=2.0, postscale_factor=0.25)
    same(scaled, [mean * SIZE / 2] * 3)
    assert data.tolist() == [RANK] * 3
    handle = hvd.allreduce_async(data, name="async")
    same(hvd.synchronize(handle), [mean] * 3)
    assert hvd.poll(handle)
    assert hvd.allreduce_(data, op=hvd.Sum) is data
    same(data, [mean * SIZE] * 3)
    handle = hvd.allreduce_async_(data, op=hvd.Sum, name="in place")
    assert hvd.synchronize(handle) is data
    # Whatever the memory looks like.
    wide = torch.arange(12.0).view(3, 4)
    same(hvd.allreduce(wide.t()), wide.t())
    assert hvd.allreduce_(wide[:, 1:3], op=hvd.Sum).data_ptr() == wide[:, 1:3].data_ptr()
    same(wide[0], [0, SIZE, 2 * SIZE, 3])
    last = torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last)
    same(hvd.allreduce(last * 0 + 1, op=hvd.Sum), torch.full((2, 3, 4, 5), float(SIZE)))
    same(hvd.allreduce(torch.tensor(1.0), op=hvd.Sum), float(SIZE))
    same(hvd.allreduce(torch.empty(0, 3)), torch.empty(0, 3))
    many = [hvd.allreduce_async(torch.ones(i + 1), op=hvd.Sum, name=f"m{i}") for i in range(50)]
    for i, handle in enumerate(many):
        same(hvd.synchronize(handle), [float(SIZE)] * (i + 1))


def case_compression():
    data = torch.tensor([1.0, 0.5]) * (RANK + 1)
    expected = torch.tensor([1.0, 0.5]) * sum(r + 1 for r in RANKS)
    for kind in (hvd.Compression.none, hvd.Compression.fp16, hvd.Compression.bf16):
        got = hvd.allreduce(data, op=hvd.Sum, compression=kind)
        assert got.dtype == torch.float32
        same(got, expected)
        small, ctx = kind.compress(data)
        assert kind.decompress(small, ctx).dtype == torch.float32
    integer, ctx = hvd.Compression.fp16.compress(torch.ones(2, dtype=torch.int32))
    assert integer.dtype == torch.int32


def case_grouped():
    tensors = [torch.ones(2), torch.ones(3, dtype=torch.int64), torch.ones(1, dtype=torch.float64)]
    for got, sent in zip(hvd.grouped_allreduce(tensors, op=hvd.Sum), tensors):
        same(got, sent * SIZE)
    handle = hvd.grouped_allreduce_async(tensors, op=hvd.Sum, name="group")
    assert len(hvd.synchronize(handle)) == 3
    hvd.synchronize(hvd.grouped_allreduce_async_(tensors, op=hvd.Sum))
    hvd.grouped_allreduce_(tensors, op=hvd.Max, name="group")
    same(tensors[1], [SIZE] * 3)
    gathered = hvd.grouped_allgather([torch.tensor([RANK]), torch.full((2, 2), RANK)])
    same(gathered[0], list(RANKS))
    assert gathered[1].shape == (2 * SIZE, 2)
    parts = hvd.grouped_reducescatter([torch.ones(SIZE), torch.ones(2 * SIZE, 2)], op=hvd.Sum)
    same(parts[0], [float(SIZE)])
    assert parts[1].shape == (2, 2)


def case_moving():
    for dtype in FLOATS + INTEGERS + [torch.bool]:
        got = hvd.allgather(torch.full((RANK + 1, 2), RANK).to(dtype))
        assert got.dtype == dtype
        same(got[:, 0], torch.tensor([r for r in RANKS for _ in range(r + 1)]).to(dtype))
        got = hvd.broadcast(torch.arange(3).to(dtype) * RANK, SIZE - 1)
        same(got, torch.arange(3).to(dtype) * (SIZE - 1))
    same(hvd.allgather(torch.tensor(RANK)), list(RANKS))
    empty = hvd.allgather(torch.empty(0 if RANK else 2, 3))
    assert empty.shape == (2, 3)
    data = torch.full((2,), float(RANK))
    assert hvd.broadcast_(data, 0, name="b") is data
    same(data, [0.0, 0.0])
    same(hvd.synchronize(hvd.broadcast_async(data + RANK, SIZE - 1)), [SIZE - 1.0] * 2)
    hvd.synchronize(hvd.broadcast_async_(data, 0))
    same(hvd.alltoall(torch.arange(SIZE) + 10 * RANK), [RANK + 10 * r for r in RANKS])
    send = torch.cat([torch.full((r + 1,), 10 * RANK + r) for r in RANKS])
    splits = torch.arange(1, SIZE + 1, dtype=torch.int32)
    got, received = hvd.alltoall(send, splits=splits)
    same(got, [10 * r + RANK for r in RANKS for _ in range(RANK + 1)])
    assert received.dtype == torch.int32 and received.tolist() == [RANK + 1] * SIZE
    got, received = hvd.synchronize(hvd.alltoall_async(send, splits.tolist(), name="a"))
    rows = 2 * SIZE + 1
    got = hvd.reducescatter(torch.ones(rows, 2), op=hvd.Sum)
    assert got.shape == (3 if RANK == 0 else 2, 2) and got.eq(SIZE).all()
    same(hvd.reducescatter(torch.full((SIZE,), float(RANK))), [(SIZE - 1) / 2])


def case_adasum():
    # Parallel vectors are averaged, orthogonal ones are added.
    same(hvd.allreduce(torch.tensor([3.0, 4.0]), op=hvd.Adasum), [3.0, 4.0])
    axis = torch.zeros(SIZE)
    axis[RANK] = 1
    got = hvd.allreduce(axis, op=hvd.Adasum)
    assert torch.allclose(got, torch.ones(SIZE), atol=1e-6), got


def case_sparse():
    indices = torch.tensor([[0, RANK + 1]])
    sparse = torch.sparse_coo_tensor(indices, torch.ones(2, 3), (SIZE + 1, 3))
    got = hvd.synchronize(hvd.sparse_allreduce_async(sparse, "rows", hvd.Sum))
    expected = torch.ones(SIZE + 1, 3)
    expected[0] = SIZE
    same(got.to_dense(), expected)
    got = hvd.sparse_allreduce_async(sparse, "rows", hvd.Average)()
    same(got.to_dense(), expected / SIZE)
    with raises(ValueError, "sparse_allreduce_async"):
        hvd.allreduce(sparse, name="sparse")
    with raises(ValueError, "dense"):
        hvd.sparse_allreduce_async(torch.ones(2), "x", hvd.Sum)


def case_autograd():
    def grad_of(function, *shape):
        x = torch.ones(*shape, requires_grad=True)
        function(x).backward()
        return x.grad

    weight = float(RANK + 1)
    total = sum(r + 1.0 for r in RANKS)
    same(grad_of(lambda x: (hvd.allreduce(x, op=hvd.Sum) * weight).sum(), 2), [total] * 2)
    same(grad_of(lambda x: (hvd.allreduce(x) * weight).sum(), 2), [total / SIZE] * 2)
    same(
        grad_of(lambda x: (hvd.grouped_allreduce([x, x])[1] * weight).sum(), 2), [total / SIZE] * 2
    )
    rows = torch.arange(float(sum(r + 1 for r in RANKS)))
    start = sum(r + 1 for r in range(RANK))
    same(
        grad_of(lambda x: (hvd.allgather(x) * rows).sum(), RANK + 1),
        rows[start : start + RANK + 1],
    )
    same(
        grad_of(lambda x: (hvd.grouped_allgather([x])[0] * rows).sum(), RANK + 1),
        rows[start : start + RANK + 1],
    )
    expected = [total / SIZE] * 2 if RANK == 0 else [0.0] * 2
    same(grad_of(lambda x: (hvd.broadcast(x, 0) * weight).sum(), 2), expected)
    same(grad_of(lambda x: (hvd.alltoall(x) * weight).sum(), SIZE), [r + 1.0 for r in RANKS])
    splits = [2] * SIZE
    same(
        grad_of(lambda x: (hvd.alltoall(x, splits=splits)[0] * weight).sum(), 2 * SIZE),
        [r + 1.0 for r in RANKS for _ in range(2)],
    )
    same(grad_of(lambda x: (hvd.reducescatter(x) * weight).sum(), SIZE), [r + 1.0 for r in RANKS])
    same(
        grad_of(lambda x: (hvd.grouped_reducescatter([x], op=hvd.Sum)[0] * weight).sum(), SIZE),
        [SIZE * (r + 1.0) for r in RANKS],
    )


def case_objects():
    assert hvd.broadcast_object({"rank": RANK, "t": torch.ones(2)}, SIZE - 1)["rank"] == SIZE - 1
    assert hvd.allgather_object(("x" * RANK, None), name="o") == [("x" * r, None) for r in RANKS]


def case_parameters():
    torch.manual_seed(RANK)
    model = torch.nn.Sequential(torch.nn.Conv2d(2, 3, 2), torch.nn.BatchNorm2d(3))
    model[0].to(memory_format=torch.channels_last)
    hvd.broadcast_parameters(model.state_dict(), root_rank=SIZE - 1)
    hvd.broadcast_parameters(model.named_parameters(), root_rank=0)
    for each in hvd.allgather_object(model.state_dict()):
        for name, value in model.state_dict().items():
            assert torch.equal(each[name], value)
    with raises(ValueError):
        hvd.broadcast_parameters(torch.ones(1), 0)


def case_optimizer_state():
    kinds = [
        (torch.optim.SGD, {"momentum": 0.9}),
        (torch.optim.Adam, {}),
        (torch.optim.Adagrad, {}),
        (torch.optim.RMSprop, {}),
        (torch.optim.LBFGS, {}),
    ]
    for kind, options in kinds:
        torch.manual_seed(RANK)
        model = torch.nn.Linear(3, 2)
        optimizer = kind(model.parameters(), lr=0.1 * (RANK + 1), **options)
        if RANK == SIZE - 1:  # the others have no state yet

            def closure():
                optimizer.zero_grad()
                loss = model(torch.ones(1, 3)).sum()
                loss.backward()
                return loss

            optimizer.step(closure)
        hvd.broadcast_optimizer_state(optimizer, root_rank=SIZE - 1)
        states = hvd.allgather_object(optimizer.state_dict())
        assert optimizer.param_groups[0]["lr"] == 0.1 * SIZE
        flat = [str(state) for state in states]
        assert len(set(flat)) == 1, flat


def case_sync_batch_norm():
    torch.manual_seed(7)
    batch = torch.randn(2 * SIZE + 1, 3, 4, dtype=torch.float64)
    mine = batch[2 * RANK : 2 * RANK + (3 if RANK == SIZE - 1 else 2)].clone().requires_grad_()
    whole = batch.clone().requires_grad_()
    ours = hvd.SyncBatchNorm(3, momentum=0.3).double()
    theirs = torch.nn.BatchNorm1d(3, momentum=0.3).double()
    for layer in (ours, theirs):
        torch.nn.init.constant_(layer.weight, 1.5)
    out, expected = ours(mine), theirs(whole)
    part = slice(2 * RANK, 2 * RANK + mine.shape[0])
    assert torch.allclose(out, expected[part])
    factor = torch.arange(float(out.numel() // mine.shape[0])).view(1, 3, 4).double()
    (out * out * factor).sum().backward()
    (expected * expected * factor).sum().backward()
    assert torch.allclose(mine.grad, whole.grad[part])
    gradient = hvd.allreduce(ours.weight.grad, op=hvd.Sum)
    assert torch.allclose(gradient, theirs.weight.grad)
    assert torch.allclose(ours.running_mean, theirs.running_mean)
    assert torch.allclose(ours.running_var, theirs.running_var)
    assert ours.num_batches_tracked == 1
    ours.eval(), theirs.eval()
    assert torch.allclose(ours(batch), theirs(batch))
    half = hvd.SyncBatchNorm(3).bfloat16()
    half(torch.randn(2, 3, 4).bfloat16().requires_grad_()).sum().backward()


def case_errors():
    if SIZE == 1:
        return
    with raises(hvd.HorovodInternalError, "'shape'", "rank 0", "rank 1"):
        hvd.allreduce(torch.ones(2 + min(RANK, 1)), name="shape")
    with raises(RuntimeError, "'dtype'"):
        hvd.allreduce(torch.ones(2, dtype=torch.float64 if RANK else torch.float32), name="dtype")
    with raises(errors.Mismatch, "'kind'"):
        if RANK:
            hvd.allgather(torch.ones(2), name="kind")
        else:
            hvd.allreduce(torch.ones(2), name="kind")
    with raises(errors.Mismatch):
        hvd.allgather(torch.ones(2, 2 + min(RANK, 1)), name="columns")
    with raises(ValueError, "float8" if hasattr(torch, "float8_e5m2") else "quint8"):
        kind = getattr(torch, "float8_e5m2", None)
        hvd.allreduce(
            torch.ones(2).to(kind)
            if kind
            else torch.quantize_per_tensor(torch.ones(2), 1.0, 0, torch.quint8)
        )
    with raises(ValueError, "layout", "'csr'"):
        hvd.allreduce(torch.eye(2).to_sparse_csr(), name="csr")
    with raises(ValueError, "meta"):
        hvd.allreduce(torch.ones(2, device="meta"))
    with raises(TypeError, "list"):
        hvd.allreduce([1.0])
    with raises(ValueError, "splits"):
        hvd.alltoall(torch.ones(4), splits=[1] * SIZE)
    with raises(ValueError, "not a member"):
        hvd.broadcast(torch.ones(1), SIZE + 3)
    if RANK == 0:
        first = hvd.allreduce_async(torch.ones(1), name="twice")
        with raises(ValueError, "twice"):
            hvd.allreduce_async(torch.ones(1), name="twice")
    hvd.barrier()
    second = first if RANK == 0 else hvd.allreduce_async(torch.ones(1), name="twice")
    same(hvd.synchronize(second), [1.0])


def case_process_sets():
    if SIZE == 1:
        return
    first = hvd.add_process_set([0])
    rest = hvd.add_process_set(hvd.ProcessSet(range(1, SIZE)))
    mine, other = (first, rest) if RANK == 0 else (rest, first)
    with raises(ValueError, "exists"):
        hvd.add_process_set([0])
    same(hvd.allreduce(torch.ones(1), op=hvd.Sum, process_set=mine), [float(mine.size())])
    same(hvd.allgather(torch.tensor([RANK]), process_set=mine), mine.ranks)
    with raises(ValueError, f"rank {RANK} is not a member of process set"):
        hvd.allreduce(torch.ones(1), process_set=other)
    assert hvd.remove_process_set(mine) and hvd.remove_process_set(other)
    with raises(ValueError, "not been added"):
        hvd.allreduce(torch.ones(1), process_set=first)


def case_join():
    for _ in range(RANK):
        present = SIZE - 1 - _
        same(hvd.allreduce(torch.ones(2), op=hvd.Sum, name="uneven"), [float(present)] * 2)
        same(hvd.allreduce(torch.ones(2), name="mean"), [1.0] * 2)
    assert hvd.join() == SIZE - 1


class Programs(torch.utils.data.Dataset):
    """As one that decodes its data with a program."""

    def __len__(self):
        return 4

    def __getitem__(self, index):
        words = ["echo", str(index)]
        return int(subprocess.check_output(words, preexec_fn=lambda: None, timeout=20))


def case_data_loader_whose_workers_start_programs():
    loader = torch.utils.data.DataLoader(
        Programs(), 2, num_workers=2, multiprocessing_context="fork", timeout=30
    )
    assert [each.tolist() for each in loader] == [[0, 1], [2, 3]]
    hvd.barrier()


cases.run(globals())
