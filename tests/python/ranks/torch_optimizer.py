"""farandole.torch.DistributedOptimizer: on any number of ranks."""

from __future__ import annotations

import copy
import gc
import warnings
import weakref

import torch

import cases
import farandole
import farandole.torch as hvd
from cases import raises

torch.set_num_threads(1)
hvd.init()
RANK, SIZE = hvd.rank(), hvd.size()


def model_of(seed=1, dtype=torch.float64):
    torch.manual_seed(seed)
    return torch.nn.Sequential(
        torch.nn.Linear(5, 7), torch.nn.Tanh(), torch.nn.Linear(7, 3), torch.nn.Linear(3, 2)
    ).to(dtype)


def batches(steps, dtype=torch.float64):
    """The whole batch of each step; rank r has rows r, r + SIZE, …"""
    generator = torch.Generator().manual_seed(5)
    return [torch.randn(4 * SIZE, 5, generator=generator, dtype=dtype) for _ in range(steps)]


def mine(batch):
    return batch[RANK::SIZE]


def loss_of(model, batch):
    return model(batch).square().mean()


def alone(make, steps, dtype=torch.float64):
    """The same training in one process, with the whole batches."""
    model = model_of(dtype=dtype)
    optimizer = make(model.parameters())
    for batch in batches(steps, dtype):
        optimizer.zero_grad()
        loss_of(model, batch).backward()
        optimizer.step()
    return model


def check_equal(model, expected, **tolerance):
    for (name, got), (_, wanted) in zip(model.named_parameters(), expected.named_parameters()):
        assert torch.allclose(got, wanted, **tolerance), (name, got, wanted)


def check_agreement(model):
    flat = torch.cat([parameter.detach().flatten() for parameter in model.parameters()])
    every = hvd.allgather(flat.unsqueeze(0))
    assert all(torch.equal(every[0], each) for each in every), every


def sgd(parameters):
    return torch.optim.SGD(parameters, lr=0.1, momentum=0.9)


def train(steps=5, make=sgd, dtype=torch.float64, **options):
    model = model_of(seed=1 + RANK, dtype=dtype)
    optimizer = hvd.DistributedOptimizer(
        make(model.parameters()), named_parameters=model.named_parameters(), **options
    )
    hvd.broadcast_parameters(model_of(dtype=dtype).state_dict(), 0)
    model.load_state_dict(model_of(dtype=dtype).state_dict())
    for batch in batches(steps, dtype):
        optimizer.zero_grad()
        loss_of(model, mine(batch)).backward()
        optimizer.step()
    check_agreement(model)
    return model, optimizer


def case_equals_one_process():
    for make in (
        sgd,
        lambda p: torch.optim.Adam(p, lr=0.01),
        lambda p: torch.optim.AdamW(p, lr=0.01, weight_decay=0.1),
        lambda p: torch.optim.Adagrad(p),
        lambda p: torch.optim.RMSprop(p),
        lambda p: torch.optim.Adadelta(p),
        lambda p: torch.optim.Adamax(p),
        lambda p: torch.optim.ASGD(p),
        lambda p: torch.optim.NAdam(p),
        lambda p: torch.optim.RAdam(p),
        lambda p: torch.optim.Rprop(p),
    ):
        model, optimizer = train(make=make)
        check_equal(model, alone(make, 5), rtol=1e-7, atol=1e-9)
        assert isinstance(optimizer, type(make(model.parameters())))


def case_options():
    expected = alone(sgd, 5)
    check_equal(train(groups=2)[0], expected)
    check_equal(train(gradient_predivide_factor=2.0)[0], expected)
    check_equal(train(sparse_as_dense=True)[0], expected)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        check_equal(train(num_groups=3)[0], expected)
    assert any("groups" in str(each.message) for each in caught)

    def divided(parameters):
        return torch.optim.SGD(parameters, lr=0.1 / SIZE, momentum=0.9)

    check_equal(train(make=divided, op=hvd.Sum)[0], expected)
    for kind in (hvd.Compression.fp16, hvd.Compression.bf16):
        model, _ = train(compression=kind, dtype=torch.float32)
        check_equal(model, alone(sgd, 5, torch.float32), rtol=0.05, atol=0.02)
        assert all(p.grad.dtype == torch.float32 for p in model.parameters())
    model, _ = train(dtype=torch.bfloat16)
    assert all(p.grad.dtype == torch.bfloat16 for p in model.parameters())

    class Halving:
        """Somebody's own compression."""

        @staticmethod
        def compress(tensor):
            return tensor / 2, "context"

        @staticmethod
        def decompress(tensor, ctx):
            assert ctx == "context"
            return tensor * 2

    check_equal(train(compression=Halving)[0], expected)
    model = model_of()
    parameters = list(model.parameters())
    optimizer = hvd.DistributedOptimizer(sgd(parameters), groups=[parameters[:2], parameters[3:]])
    for batch in batches(5):
        optimizer.zero_grad()
        loss_of(model, mine(batch)).backward()
        optimizer.step()
    check_equal(model, expected)


def case_gradients_lie_in_shared_memory():
    model, optimizer = train(steps=1)
    optimizer.zero_grad()
    loss_of(model, mine(batches(1)[0])).backward()
    handles = [bucket.handle for bucket in optimizer._reducer.buckets]
    assert all(handle is not None for handle in handles)  # under way before step()
    optimizer.step()
    for parameter in model.parameters():
        slot = optimizer._reducer.by_id[id(parameter)]
        assert parameter.grad is slot.place and slot.bucket.memory.is_shared()


def case_several_backward_passes():
    model = model_of()
    optimizer = hvd.DistributedOptimizer(
        sgd(model.parameters()), model.named_parameters(), backward_passes_per_step=2
    )
    expected = model_of()
    reference = sgd(expected.parameters())
    for first, second in (batches(2), batches(4)[2:]):
        optimizer.zero_grad()
        loss_of(model, mine(first)).backward()
        assert not optimizer._reducer.in_flight()
        loss_of(model, mine(second)).backward()
        optimizer.step()
        reference.zero_grad()
        loss_of(expected, first).backward()
        loss_of(expected, second).backward()
        reference.step()
    check_equal(model, expected)
    # A shorter last round, and one that was given up.
    optimizer.zero_grad()
    loss_of(model, mine(first)).backward()
    optimizer.zero_grad()
    loss_of(model, mine(first)).backward()
    optimizer.step()
    reference.zero_grad()
    loss_of(expected, first).backward()
    reference.step()
    check_equal(model, expected)
    optimizer.set_backward_passes_per_step(1)
    optimizer.zero_grad()
    loss_of(model, mine(first)).backward()
    assert optimizer._reducer.in_flight()
    with raises(ValueError, "backward_passes_per_step", "3.", f"rank {RANK}"):
        loss_of(model, mine(first)).backward()
    with raises(ValueError, "was changed"):
        optimizer.step()
    optimizer.zero_grad()
    loss_of(model, mine(first)).backward()
    optimizer.step()
    check_agreement(model)


def case_clipping():
    model, expected = model_of(), model_of()
    optimizer = hvd.DistributedOptimizer(sgd(model.parameters()))
    reference = sgd(expected.parameters())
    for batch in batches(3):
        optimizer.zero_grad()
        loss_of(model, mine(batch)).backward()
        optimizer.synchronize()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.01)
        with optimizer.skip_synchronize():
            optimizer.step()
        reference.zero_grad()
        loss_of(expected, batch).backward()
        torch.nn.utils.clip_grad_norm_(expected.parameters(), 0.01)
        reference.step()
    check_equal(model, expected)
    optimizer.zero_grad()
    loss_of(model, mine(batch)).backward()
    optimizer.synchronize()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        optimizer.step()
    assert any("skip_synchronize" in str(each.message) for each in caught)


def case_closures():
    def make(parameters):
        return torch.optim.LBFGS(parameters, lr=0.5, max_iter=4)

    model, expected = model_of(), model_of()
    optimizer = hvd.DistributedOptimizer(make(model.parameters()))
    reference = make(expected.parameters())
    batch = batches(1)[0]

    def closure():
        optimizer.zero_grad()
        loss = loss_of(model, mine(batch))
        loss.backward()
        return loss

    def reference_closure():
        reference.zero_grad()
        loss = loss_of(expected, batch)
        loss.backward()
        return loss

    for _ in range(3):
        optimizer.step(closure)
        reference.step(reference_closure)
    check_equal(model, expected, rtol=1e-6, atol=1e-8)
    plain = hvd.DistributedOptimizer(sgd(model.parameters()))

    def simple():
        plain.zero_grad()
        loss = loss_of(model, mine(batch))
        loss.backward()
        return loss

    assert plain.step(simple).item() > 0
    check_agreement(model)


class Branches(torch.nn.Module):
    """Uses one of its layers, or two."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(3)
        self.first = torch.nn.Linear(5, 1).double()
        self.second = torch.nn.Linear(5, 1).double()
        self.never = torch.nn.Linear(5, 1).double()

    def forward(self, x, both):
        return self.first(x) + self.second(x) if both else self.first(x)


def case_unused_parameters():
    model = Branches()
    optimizer = hvd.DistributedOptimizer(
        torch.optim.SGD(model.parameters(), lr=0.1, weight_decay=0.5),
        named_parameters=model.named_parameters(),
    )
    never = copy.deepcopy(model.never.state_dict())
    for step, batch in enumerate(batches(4)):
        optimizer.zero_grad(set_to_none=True)
        # The second layer is used by rank 0 alone, in every other step.
        both = RANK == 0 and step % 2 == 0
        model(mine(batch), both).sum().backward()
        optimizer.step()
        assert model.never.weight.grad is None and model.never.bias.grad is None
        assert (model.second.weight.grad is not None) == (step % 2 == 0)
        check_agreement(model)
    # No gradient, no step: weight decay has not touched it.
    assert torch.equal(model.never.weight, never["weight"])
    # No backward at all on some rank.
    optimizer.zero_grad(set_to_none=True)
    if RANK == 0:
        model(mine(batch), True).sum().backward()
    optimizer.step()
    check_agreement(model)


def case_parameters_added_and_frozen_later():
    model, head = model_of(), model_of(9)
    head[0] = torch.nn.Linear(2, 7).double()
    hvd.broadcast_parameters(head.state_dict(), 0)
    for parameter in model[0].parameters():
        parameter.requires_grad_(False)
    optimizer = hvd.DistributedOptimizer(sgd(model.parameters()))
    batch = batches(1)[0]

    def step():
        optimizer.zero_grad()
        loss_of(torch.nn.Sequential(model, head), mine(batch)).backward()
        optimizer.step()
        check_agreement(model)
        check_agreement(head)

    model.zero_grad(), head.zero_grad()
    start = copy.deepcopy(model[0].state_dict())
    step()
    assert torch.equal(model[0].weight, start["weight"])
    optimizer.add_param_group({"params": head.parameters(), "lr": 0.05})
    head.zero_grad()
    step()
    for parameter in model[0].parameters():
        parameter.requires_grad_(True)
    step()
    step()
    assert not torch.equal(model[0].weight, start["weight"])
    assert len(optimizer._reducer.slots) == len(list(model.parameters())) * 2


def case_zero_grad_at_the_wrong_time():
    model = model_of()
    optimizer = hvd.DistributedOptimizer(sgd(model.parameters()), model.named_parameters())
    batch = batches(1)[0]
    loss_of(model, mine(batch)).backward()
    with raises(AssertionError, "zero_grad()", f"rank {RANK}", "before backward()"):
        optimizer.zero_grad()
    optimizer.step()
    # Behind the optimizer's back.
    optimizer.zero_grad()
    loss_of(model, mine(batch)).backward()
    for parameter in model.parameters():
        parameter.grad = None
    with raises(ValueError, "0.weight was cleared", f"rank {RANK}", "synchronize()"):
        optimizer.step()
    hvd.barrier()
    optimizer.zero_grad()
    loss_of(model, mine(batch)).backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1e-3)
    with raises(ValueError, "was changed", "skip_synchronize"):
        optimizer.step()
    hvd.barrier()
    optimizer.zero_grad()
    loss_of(model, mine(batch)).backward()
    optimizer.step()
    check_agreement(model)


def case_sparse_gradients():
    def make():
        torch.manual_seed(4)
        return torch.nn.Embedding(10, 3, sparse=True).double(), torch.nn.Linear(3, 1).double()

    for as_dense in (False, True):
        table, layer = make()
        both = [*table.parameters(), *layer.parameters()]
        optimizer = hvd.DistributedOptimizer(
            torch.optim.SGD(both, lr=0.1), sparse_as_dense=as_dense
        )
        reference_table, reference_layer = make()
        reference = torch.optim.SGD(
            [*reference_table.parameters(), *reference_layer.parameters()], lr=0.1
        )
        for step in range(4):
            rows = torch.arange(2 * SIZE) % 7 + step
            optimizer.zero_grad()
            # In the second step rank 0 has no gradient for the table at all.
            if not (step == 1 and RANK == 0):
                layer(table(rows[RANK::SIZE])).square().sum().backward()
            optimizer.step()
            somebody = SIZE > 1 or step != 1
            if somebody:
                assert table.weight.grad.is_sparse != as_dense
            reference.zero_grad()
            loss = sum(
                reference_layer(reference_table(rows[r::SIZE])).square().sum()
                for r in range(SIZE)
                if not (step == 1 and r == 0)
            )
            if somebody:
                (loss / SIZE).backward()
            reference.step()
            assert torch.allclose(table.weight, reference_table.weight)
            assert torch.allclose(layer.weight, reference_layer.weight)


def case_adasum():
    model, expected = model_of(), model_of()
    optimizer = hvd.DistributedOptimizer(
        torch.optim.SGD(model.parameters(), lr=0.1), model.named_parameters(), op=hvd.Adasum
    )
    reference = torch.optim.SGD(expected.parameters(), lr=0.1)
    whole = batches(1)[0]
    for _ in range(3):
        # The same batch everywhere: Adasum of equal steps is that step.
        for one, other in ((model, optimizer), (expected, reference)):
            other.zero_grad()
            loss_of(one, whole).backward()
            other.step()
        check_equal(model, expected)
    for batch in batches(3):
        optimizer.zero_grad()
        loss_of(model, mine(batch)).backward()
        optimizer.step()
    check_agreement(model)


def case_process_set():
    if SIZE == 1:
        return
    first = hvd.add_process_set([0])
    rest = hvd.add_process_set(list(range(1, SIZE)))
    own, other = (first, rest) if RANK == 0 else (rest, first)
    model = model_of()
    with raises(ValueError, f"rank {RANK} is not in"):
        hvd.DistributedOptimizer(sgd(model.parameters()), process_set=other)
    optimizer = hvd.DistributedOptimizer(sgd(model.parameters()), process_set=own)
    for batch in batches(3):
        optimizer.zero_grad()
        loss_of(model, mine(batch)).backward()
        optimizer.step()
    weights = hvd.allgather(model[0].weight.detach().unsqueeze(0))
    assert not torch.equal(weights[0], weights[1])
    assert all(torch.equal(weights[1], each) for each in weights[1:])
    hvd.remove_process_set(first), hvd.remove_process_set(rest)


def case_unequal_batches_with_join():
    model = model_of()
    optimizer = hvd.DistributedOptimizer(sgd(model.parameters()), model.named_parameters())
    for batch in batches(2 + RANK):
        optimizer.zero_grad()
        loss_of(model, mine(batch)).backward()
        optimizer.step()
    assert hvd.join() == SIZE - 1
    # Whoever joined early has missed the last steps.
    hvd.broadcast_parameters(model.state_dict(), SIZE - 1)
    check_agreement(model)


def case_rank_without_any_batch():
    model, expected = model_of(), model_of()
    optimizer = hvd.DistributedOptimizer(sgd(model.parameters()), model.named_parameters())
    reference = sgd(expected.parameters())
    if RANK > 0:
        for batch in batches(2):
            for one, other in ((model, optimizer), (expected, reference)):
                other.zero_grad()
                loss_of(one, batch).backward()
                other.step()
        # Averages are over those that still have data.
        check_equal(model, expected)
    hvd.join()


def case_nothing_is_left_behind():
    model, optimizer = train(steps=2)
    before = [weakref.ref(optimizer), weakref.ref(optimizer._reducer), weakref.ref(model[0].weight)]
    memory = weakref.ref(optimizer._reducer.buckets[0].memory)
    plain = sgd(model.parameters())
    del optimizer
    gc.collect()
    assert before[0]() is None and before[1]() is None
    # The hooks are gone: nothing is reduced any more; gradients stay valid.
    assert all(parameter.grad is not None for parameter in model.parameters())
    plain.zero_grad()
    loss_of(model, mine(batches(1)[0])).backward()
    plain.step()
    model.zero_grad(set_to_none=True)
    del model, plain
    gc.collect()
    assert before[2]() is None and memory() is None


def case_two_optimizers():
    one, two = model_of(1), model_of(2)
    first = hvd.DistributedOptimizer(sgd(one.parameters()))
    second = hvd.DistributedOptimizer(sgd(two.parameters()))
    for batch in batches(3):
        first.zero_grad(), second.zero_grad()
        (loss_of(one, mine(batch)) + loss_of(two, mine(batch))).backward()
        second.step(), first.step()
    check_agreement(one)
    check_agreement(two)
    check_equal(one, alone(sgd, 3))


def case_schedulers_and_state():
    model = model_of()
    plain = sgd(model.parameters())
    early = torch.optim.lr_scheduler.StepLR(plain, 1, gamma=0.5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        optimizer = hvd.DistributedOptimizer(plain)
        late = torch.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.1)
        for batch in batches(2):
            optimizer.zero_grad()
            loss_of(model, mine(batch)).backward()
            optimizer.step()
            early.step()
        assert abs(optimizer.param_groups[0]["lr"] - 0.025) < 1e-9
        late.step()
    state = copy.deepcopy(optimizer.state_dict())
    optimizer.load_state_dict(state)
    optimizer.zero_grad()
    loss_of(model, mine(batch)).backward()
    optimizer.step()
    check_agreement(model)
    assert str(optimizer).startswith("SGD")


def case_shutdown_and_init_again():
    model = model_of()
    optimizer = hvd.DistributedOptimizer(sgd(model.parameters()))
    for _ in range(3):
        for batch in batches(2):
            optimizer.zero_grad()
            loss_of(model, mine(batch)).backward()
            optimizer.step()
        check_agreement(model)
        hvd.shutdown()
        hvd.init()
    optimizer.zero_grad()
    loss_of(model, mine(batch)).backward()
    optimizer.step()
    assert optimizer._reducer.buckets[0].memory.is_shared()


def case_many_buckets():
    torch.manual_seed(1)
    model = torch.nn.Sequential(*[torch.nn.Linear(300, 300) for _ in range(24)])
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1))
    assert len(optimizer._reducer.buckets) > 3
    before = farandole.counters()["zero_copy_bytes"]
    for _ in range(2):
        optimizer.zero_grad()
        torch.manual_seed(RANK)
        model(torch.randn(2, 300)).sum().backward()
        optimizer.step()
    assert SIZE == 1 or farandole.counters()["zero_copy_bytes"] > before
    check_agreement(model)


def case_bad_arguments():
    model = model_of()
    named = list(model.named_parameters())
    make = hvd.DistributedOptimizer
    with raises(ValueError, "named_parameters()"):
        make(sgd(model.parameters()), named_parameters=[p for _, p in named])
    with raises(ValueError, "not in named_parameters", "(7, 5)"):
        make(sgd(model.parameters()), named_parameters=named[1:])
    with raises(ValueError, "twice: same"):
        make(sgd(model.parameters()), named_parameters=[("same", p) for _, p in named])
    with raises(ValueError, "backward_passes_per_step"):
        make(sgd(model.parameters()), backward_passes_per_step=0)
    with raises(ValueError, "op"):
        make(sgd(model.parameters()), op=hvd.Max)
    with raises(ValueError, "Average"):
        make(sgd(model.parameters()), op=hvd.Sum, gradient_predivide_factor=2.0)
    with raises(ValueError, "groups"):
        make(sgd(model.parameters()), groups=[1, 2])  # type: ignore[list-item]
    with raises(ValueError, "two groups"):
        make(sgd(model.parameters()), groups=[[named[0][1]], [named[0][1]]])
    with raises(TypeError, "Optimizer"):
        make(model)
    wrapped = make(sgd(model.parameters()))
    with raises(ValueError, "already"):
        make(wrapped)


def case_different_models():
    if SIZE == 1:
        return
    # Once in buckets of the same size, once of different ones.
    for width, more in ((3, 1), (300, 50)):
        layer = torch.nn.Linear(width + more * min(RANK, 1), 2)
        optimizer = hvd.DistributedOptimizer(
            torch.optim.SGD(layer.parameters(), lr=1.0),
            named_parameters=[("head." + name, p) for name, p in layer.named_parameters()],
        )
        layer(torch.ones(4, layer.in_features)).sum().backward()
        with raises(hvd.HorovodInternalError, "rank 0", "rank 1", "head.weight", f"(2, {width})"):
            optimizer.step()
    layers = [torch.nn.Linear(2, 2) for _ in range(1 + min(RANK, 1))]
    optimizer = hvd.DistributedOptimizer(
        torch.optim.SGD([p for layer in layers for p in layer.parameters()], lr=1.0)
    )
    torch.nn.Sequential(*layers)(torch.ones(1, 2)).sum().backward()
    with raises(hvd.HorovodInternalError, "rank 0 has 2 of them, rank 1 has 4"):
        optimizer.step()


def case_elastic():
    model = model_of(seed=1 + RANK)
    optimizer = hvd.DistributedOptimizer(sgd(model.parameters()))
    sampler = hvd.elastic.ElasticSampler(list(range(10)), shuffle=True)
    state = hvd.elastic.TorchState(model=model, optimizer=optimizer, sampler=sampler, epoch=RANK)
    resets = []
    state.register_reset_callbacks([lambda: resets.append(1)])
    calls = []

    @hvd.elastic.run
    def loop(state):
        check_agreement(state.model)
        assert state.epoch == 0
        calls.append(1)
        for index, batch in enumerate(batches(2)):
            optimizer.zero_grad()
            loss_of(model, mine(batch)).backward()
            optimizer.step()
            state.sampler.record_batch(index, 1)
        state.commit()
        kept = copy.deepcopy(model.state_dict())
        state.epoch = 5
        with torch.no_grad():
            model[0].weight.zero_()
        state.restore()
        assert state.epoch == 0 and torch.equal(model[0].weight, kept["0.weight"])
        if len(calls) == 1:
            from farandole.elastic import HostsUpdatedInterrupt

            raise HostsUpdatedInterrupt()
        return "done"

    assert loop(state) == "done"
    assert len(calls) == 2 and resets == [1]
    assert len(sampler.processed_indices) >= 2
    left = [index for part in hvd.allgather_object(list(sampler)) for index in part]
    sampler.set_epoch(3)
    every = [index for part in hvd.allgather_object(list(sampler)) for index in part]
    assert set(every) == set(range(10)) and len(every) == SIZE * len(sampler)
    assert len(left) <= len(every)


cases.run(globals())
