"""DistributedDataParallel, its communication hooks, Join and ZeroRedundancyOptimizer."""

from __future__ import annotations

import sys
import warnings

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from farandole import core

warnings.simplefilter("ignore")
torch.manual_seed(7)
BACKEND = sys.argv[1] if len(sys.argv) > 1 else "farandole"
dist.init_process_group(BACKEND)
RANK, SIZE = dist.get_rank(), dist.get_world_size()
STEPS = 4
CASES = []


def case(function):
    CASES.append(function)
    return function


def model():
    torch.manual_seed(3)
    return nn.Sequential(
        nn.Linear(6, 40), nn.ReLU(), nn.Linear(40, 40), nn.Tanh(), nn.Linear(40, 2)
    )


def batch(step, rank):
    generator = torch.Generator().manual_seed(100 * step + rank)
    return torch.randn(5, 6, generator=generator), torch.randn(5, 2, generator=generator)


def reference(steps=STEPS):
    """What the mean of all ranks' gradients makes of the model, in one process."""
    net = model()
    optimizer = torch.optim.SGD(net.parameters(), 0.1, momentum=0.9)
    for step in range(steps):
        optimizer.zero_grad()
        for rank in range(SIZE):
            x, y = batch(step, rank)
            (nn.functional.mse_loss(net(x), y) / SIZE).backward()
        optimizer.step()
    return [each.detach() for each in net.parameters()]


def train(ddp, optimizer=None, steps=STEPS):
    optimizer = optimizer or torch.optim.SGD(ddp.parameters(), 0.1, momentum=0.9)
    for step in range(steps):
        optimizer.zero_grad()
        x, y = batch(step, RANK)
        nn.functional.mse_loss(ddp(x), y).backward()
        optimizer.step()
    return [each.detach() for each in ddp.parameters()]


def close(found, tolerance=1e-5):
    for mine, expected in zip(found, reference()):
        assert torch.allclose(mine, expected, atol=tolerance), (mine - expected).abs().max()
    same = [torch.zeros_like(found[0]) for _ in range(SIZE)]
    dist.all_gather(same, found[0])
    assert all(torch.equal(each, found[0]) for each in same), "ranks differ"


@case
def plain():
    net = model()
    if RANK > 0:  # the first rank's parameters are what counts
        for each in net.parameters():
            each.data.add_(1)
    close(train(DistributedDataParallel(net)))


@case
def many_buckets():
    close(train(DistributedDataParallel(model(), bucket_cap_mb=0.002)))


@case
def gradients_as_views():
    close(train(DistributedDataParallel(model(), gradient_as_bucket_view=True)))


def large_gradients(net, steps=5):
    """Compares every step's gradients with the mean of all ranks', computed here."""
    alone = nn.Sequential(nn.Linear(64, 256), nn.Tanh(), nn.Linear(256, 64))
    alone.load_state_dict(net.module.state_dict())
    for step in range(steps):
        data = torch.randn(SIZE, 4, 64, generator=torch.Generator().manual_seed(step))
        net.zero_grad()
        alone.zero_grad()
        net(data[RANK]).square().mean().backward()
        alone(data.view(-1, 64)).square().mean().backward()
        for mine, expected in zip(net.parameters(), alone.parameters()):
            assert torch.allclose(mine.grad, expected.grad, atol=1e-6), step
        yield step


@case
def buckets_in_shared_memory():
    for as_view in (False, True):
        net = nn.Sequential(nn.Linear(64, 256), nn.Tanh(), nn.Linear(256, 64))
        net = DistributedDataParallel(net, gradient_as_bucket_view=as_view)
        before = core.counters()["zero_copy_bytes"]
        for _ in large_gradients(net):
            pass
        # The buckets are known from the second step on.
        assert core.counters()["zero_copy_bytes"] - before >= 3 * 4 * 2 * 64 * 256


if hasattr(torch.Tensor, "untyped_storage"):

    @case
    def buckets_that_numpy_sees_stay_where_they_are():
        net = nn.Sequential(nn.Linear(64, 256), nn.Tanh(), nn.Linear(256, 64))
        net = DistributedDataParallel(net, gradient_as_bucket_view=True)
        arrays = []
        for step in large_gradients(net):
            grad = net.module[0].weight.grad
            if step == 1:
                arrays = [grad, grad.numpy()]
            elif step > 1:
                assert arrays[0].data_ptr() == arrays[1].ctypes.data


@case
def exception_in_backward():
    """What was started goes on, and the next model trains as if nothing had been."""
    net = DistributedDataParallel(model())
    train(net)

    def fail(_):
        raise ArithmeticError("in backward")

    x, y = batch(0, RANK)
    x.requires_grad_().register_hook(fail)
    try:
        nn.functional.mse_loss(net(x), y).backward()
    except ArithmeticError:
        pass
    else:
        raise AssertionError("the hook should have raised")
    close(train(DistributedDataParallel(model())))


@case
def static_graph():
    close(train(DistributedDataParallel(model(), static_graph=True)))


@case
def own_hook():
    ddp = DistributedDataParallel(model(), bucket_cap_mb=0.002)

    def hook(group, bucket):
        tensor = bucket.buffer().div_(SIZE)
        return (
            dist.all_reduce(tensor, group=group, async_op=True)
            .get_future()
            .then(lambda future: future.value()[0])
        )

    ddp.register_comm_hook(None, hook)
    close(train(ddp))


@case
def ready_made_hooks():
    from torch.distributed.algorithms.ddp_comm_hooks import default_hooks

    ddp = DistributedDataParallel(model())
    ddp.register_comm_hook(None, default_hooks.allreduce_hook)
    close(train(ddp))
    ddp = DistributedDataParallel(model())
    ddp.register_comm_hook(None, default_hooks.fp16_compress_hook)
    close(train(ddp), 1e-2)


@case
def powersgd():
    from torch.distributed.algorithms.ddp_comm_hooks import powerSGD_hook

    ddp = DistributedDataParallel(model())
    state = powerSGD_hook.PowerSGDState(None, matrix_approximation_rank=2, start_powerSGD_iter=2)
    ddp.register_comm_hook(state, powerSGD_hook.powerSGD_hook)
    found = train(ddp)
    same = [torch.zeros_like(found[0]) for _ in range(SIZE)]
    dist.all_gather(same, found[0])
    assert all(torch.equal(each, found[0]) for each in same), "ranks differ"


@case
def accumulation():
    ddp = DistributedDataParallel(model())
    x, y = batch(0, RANK)
    with ddp.no_sync():
        nn.functional.mse_loss(ddp(x), y).backward()
    nn.functional.mse_loss(ddp(x), y).backward()
    mine = next(ddp.parameters()).grad
    same = [torch.zeros_like(mine) for _ in range(SIZE)]
    dist.all_gather(same, mine)
    assert all(torch.equal(each, mine) for each in same), "ranks differ"


class Branches(nn.Module):
    def __init__(self):
        super().__init__()
        self.parts = nn.ModuleList([nn.Linear(6, 2) for _ in range(SIZE + 1)])

    def forward(self, x):
        return self.parts[0](x) + self.parts[1 + RANK](x)


@case
def unused_parameters():
    torch.manual_seed(1)
    ddp = DistributedDataParallel(Branches(), find_unused_parameters=True)
    train(ddp)
    for each in ddp.parameters():
        same = [torch.zeros_like(each) for _ in range(SIZE)]
        dist.all_gather(same, each.detach())
        assert all(torch.equal(one, each.detach()) for one in same), "ranks differ"


@case
def buffers():
    net = nn.Sequential(nn.Linear(6, 4), nn.BatchNorm1d(4), nn.Linear(4, 2))
    ddp = DistributedDataParallel(net)
    train(ddp)


@case
def unequal_batches():
    from torch.distributed.algorithms.join import Join

    ddp = DistributedDataParallel(model())
    optimizer = torch.optim.SGD(ddp.parameters(), 0.1)
    with Join([ddp]):
        for step in range(2 + RANK):
            optimizer.zero_grad()
            x, y = batch(step, RANK)
            nn.functional.mse_loss(ddp(x), y).backward()
            optimizer.step()


@case
def zero_redundancy():
    from torch.distributed.optim import ZeroRedundancyOptimizer

    ddp = DistributedDataParallel(model())
    optimizer = ZeroRedundancyOptimizer(ddp.parameters(), torch.optim.SGD, lr=0.1, momentum=0.9)
    close(train(ddp, optimizer))
    optimizer.consolidate_state_dict(0)


for each in CASES:
    try:
        each()
    except BaseException:
        print(f"in {each.__name__}:", flush=True)
        raise
dist.destroy_process_group()
print(f"{len(CASES)} cases passed")
