"""horovod.run(): started as an ordinary program, it starts ranks itself."""

import horovod


def sum_of_ranks(more, factor=1):
    import torch

    import horovod.torch as hvd

    hvd.init()
    total = hvd.allreduce(torch.tensor([hvd.rank()]), op=hvd.Sum).item()
    return (total + more) * factor


if __name__ == "__main__":
    print(horovod.run(sum_of_ranks, args=(10,), kwargs={"factor": 2}, num_proc=3))
