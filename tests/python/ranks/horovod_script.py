"""A script as people wrote them for Horovod, and the private names seen in the wild."""

import argparse

import torch
import torch.nn.functional as F
import torch.utils.data.distributed
from horovod.torch.mpi_ops import Average, allreduce_async_, is_homogeneous, synchronize

import horovod
import horovod.torch as hvd
from horovod.common.exceptions import HorovodInternalError, HostsUpdatedInterrupt  # noqa: F401
from horovod.common.process_sets import ProcessSet
from horovod.common.util import (
    env,
    extension_available,
    gloo_built,
    is_version_greater_equal_than,
    mpi_built,
)
from horovod.runner.common.util.env import get_env_rank_and_size
from horovod.runner.util.threads import in_thread

parser = argparse.ArgumentParser()
parser.add_argument("--use-adasum", action="store_true", default=False)
parser.add_argument("--fp16-allreduce", action="store_true", default=False)
parser.add_argument("--gradient-predivide-factor", type=float, default=1.0)
args = parser.parse_args()

assert get_env_rank_and_size()[1] >= 1
hvd.init()
torch.manual_seed(42)
torch.set_num_threads(1)
assert get_env_rank_and_size() == (hvd.rank(), hvd.size())

features = torch.randn(256, 10, generator=torch.Generator().manual_seed(1))
dataset = torch.utils.data.TensorDataset(features, (features.sum(1) > 0).long())
sampler = torch.utils.data.distributed.DistributedSampler(
    dataset, num_replicas=hvd.size(), rank=hvd.rank()
)
loader = torch.utils.data.DataLoader(dataset, batch_size=16, sampler=sampler)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = torch.nn.Linear(10, 32)
        self.norm = hvd.SyncBatchNorm(32)
        self.fc2 = torch.nn.Linear(32, 2)

    def forward(self, x):
        return F.log_softmax(self.fc2(F.relu(self.norm(self.fc1(x)))), dim=1)


model = Net()
lr_scaler = hvd.size() if not args.use_adasum else 1
optimizer = torch.optim.SGD(model.parameters(), lr=0.02 * lr_scaler, momentum=0.5)
hvd.broadcast_parameters(model.state_dict(), root_rank=0)
hvd.broadcast_optimizer_state(optimizer, root_rank=0)
compression = hvd.Compression.fp16 if args.fp16_allreduce else hvd.Compression.none
optimizer = hvd.DistributedOptimizer(
    optimizer,
    named_parameters=model.named_parameters(),
    compression=compression,
    op=hvd.Adasum if args.use_adasum else hvd.Average,
    gradient_predivide_factor=args.gradient_predivide_factor,
)
assert optimizer._parameter_names[model.fc1.weight] == "fc1.weight"
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=5, gamma=0.9)


def metric_average(val, name):
    return hvd.allreduce(torch.tensor(val), name=name).item()


for epoch in range(6):
    model.train()
    sampler.set_epoch(epoch)
    for data, target in loader:
        optimizer.zero_grad()
        F.nll_loss(model(data), target).backward()
        optimizer.step()
    scheduler.step()

model.eval()
correct = sum((model(d).argmax(1) == t).sum().item() for d, t in loader)
accuracy = metric_average(correct / len(sampler), "avg_accuracy")
if hvd.rank() == 0:
    print(f"accuracy {accuracy:.3f}", flush=True)
assert accuracy > 0.8

handle = allreduce_async_(torch.ones(2), op=Average)
assert synchronize(handle).tolist() == [1, 1]
try:
    hvd.allreduce(torch.ones(2 + (hvd.rank() == 0)), name="mismatch")
    assert hvd.size() == 1
except HorovodInternalError as error:
    assert "rank 0" in str(error) and isinstance(error, RuntimeError)

assert is_homogeneous() and gloo_built() and not mpi_built() and extension_available("torch")
assert is_version_greater_equal_than(torch.__version__, "1.13.0")
assert not is_version_greater_equal_than("1.9.0", "1.10.0")
with env(HOROVOD_TEST="1"):
    import os

    assert os.environ["HOROVOD_TEST"] == "1"
assert "HOROVOD_TEST" not in os.environ
in_thread(lambda: None).join()
state = hvd.elastic.TorchState(model=model, optimizer=optimizer, batch=0)
assert state._host_messages.empty() and state._last_updated_timestamp == 0
state.commit()
assert horovod.__version__.startswith("0.28")

hvd.shutdown()
hvd.init(process_sets=[ProcessSet([0])])
assert hvd.is_initialized() and hvd.local_rank() == hvd.rank()
hvd.shutdown()
try:
    hvd.rank()
    raise AssertionError("rank() after shutdown()")
except ValueError:
    pass
for missing in ("spark", "ray", "mxnet"):
    try:
        __import__("horovod." + missing)
        raise AssertionError(missing)
    except ImportError as error:
        assert "Farandole" in str(error)
print("script passed", flush=True)
