"""What PyTorch 2 builds on collectives: functional ones, meshes, DTensor, fully_shard, …"""

from __future__ import annotations

import shutil
import tempfile
import warnings
from typing import Any

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as functional
import torch.distributed.checkpoint as checkpoint
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Replicate, Shard, distribute_tensor

warnings.simplefilter("ignore")
dist.init_process_group("farandole")
RANK, SIZE = dist.get_rank(), dist.get_world_size()
WORLD = dist.group.WORLD
CASES = []


def case(function):
    CASES.append(function)
    return function


@case
def functional_collectives():
    assert (functional.all_reduce(torch.ones(3), "sum", WORLD) + 0).tolist() == [SIZE] * 3
    gathered = functional.all_gather_tensor(torch.full((2,), float(RANK)), 0, WORLD) + 0
    assert gathered.tolist() == [float(i // 2) for i in range(2 * SIZE)]
    part = functional.reduce_scatter_tensor(torch.arange(2.0 * SIZE), "sum", 0, WORLD) + 0
    assert part.tolist() == [SIZE * 2.0 * RANK, SIZE * (2.0 * RANK + 1)]
    parts = functional.all_to_all_single(torch.full((SIZE,), float(RANK)), None, None, WORLD) + 0
    assert parts.tolist() == [float(i) for i in range(SIZE)]
    assert (functional.broadcast(torch.tensor([RANK]), 1, WORLD) + 0).tolist() == [1]
    several = functional.all_reduce_coalesced([torch.ones(2), torch.ones(3)], "sum", WORLD)
    assert [(each + 0).sum().item() for each in several] == [2 * SIZE, 3 * SIZE]


@case
def tensors_over_a_mesh():
    mesh = init_device_mesh("cpu", (SIZE,))
    tensor = distribute_tensor(torch.arange(4.0 * SIZE), mesh, [Shard(0)])
    assert tensor.to_local().numel() == 4
    assert tensor.full_tensor().tolist() == torch.arange(4.0 * SIZE).tolist()
    assert tensor.redistribute(mesh, [Replicate()]).to_local().numel() == 4 * SIZE


@case
def groups_of_a_mesh():
    mesh = init_device_mesh("cpu", (SIZE, 1), mesh_dim_names=("data", "model"))
    tensor = torch.ones(1)
    dist.all_reduce(tensor, group=mesh.get_group("data"))
    dist.all_reduce(tensor, group=mesh.get_group("model"))
    assert tensor.item() == SIZE


@case
def fully_sharded():
    from torch.distributed.fsdp import fully_shard

    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Linear(8, 2))
    expected = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Linear(8, 2))
    expected.load_state_dict(net.state_dict())
    fully_shard(net, mesh=init_device_mesh("cpu", (SIZE,)))
    for model in (net, expected):
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        model(torch.ones(2, 8)).sum().backward()
        optimizer.step()
    for mine, other in zip(net.parameters(), expected.parameters()):
        assert torch.allclose(mine.full_tensor(), other, atol=1e-6)


@case
def checkpoints():
    place: list[Any] = [tempfile.mkdtemp() if RANK == 0 else None]
    dist.broadcast_object_list(place, 0)
    state = {"weights": torch.arange(3.0)}
    checkpoint.save(state, checkpoint_id=place[0])
    state = {"weights": torch.zeros(3)}
    checkpoint.load(state, checkpoint_id=place[0])
    assert state["weights"].tolist() == [0.0, 1.0, 2.0]
    dist.barrier()
    if RANK == 0:
        shutil.rmtree(place[0])


for each in CASES:
    try:
        each()
    except BaseException:
        print(f"in {each.__name__}:", flush=True)
        raise
dist.destroy_process_group()
print(f"{len(CASES)} cases passed")
