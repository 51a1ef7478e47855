"""Scripts written for Horovod, unmodified."""

from __future__ import annotations

import os
import sys

import pytest

from conftest import HERE, ROOT, TREE, run_command


@pytest.mark.parametrize(
    "np, options",
    [
        (1, ()),
        (2, ("--gradient-predivide-factor", "2.0")),
        (3, ("--use-adasum", "--fp16-allreduce")),
    ],
)
def test_script(launch, np, options):
    done = launch(np, "horovod_script.py", *options).expect_success()
    assert done.output.count("script passed") == np
    assert "accuracy" in done.output


def test_function_on_several_ranks():
    env = {
        "PYTHONPATH": str(ROOT / "python"),
        "FARANDOLE_LIBRARY": str(TREE / "lib" / "libfarandole.so"),
        "PATH": f"{TREE / 'bin'}:{os.environ['PATH']}",
    }
    done = run_command([sys.executable, str(HERE / "ranks" / "horovod_run.py")], env)
    done.expect_success()
    assert "[26, 26, 26]" in done.output


def test_asynchronous_loader():
    from horovod.data import AsyncDataLoaderMixin, BaseDataLoader

    class Loader(BaseDataLoader):
        fails_at = -1

        def __len__(self):
            return 5

        def _iterate(self):
            for i in range(5):
                if i == self.fails_at:
                    raise KeyError(i)
                yield i

        def _process_batch(self, batch):
            return batch * 2

    class Ahead(AsyncDataLoaderMixin, Loader):
        pass

    for loader in (Ahead(async_loader_queue_size=2), Ahead(0), Loader()):
        loader.fails_at = -1
        assert list(loader) == [0, 2, 4, 6, 8]
        assert list(zip(loader, range(2))) == [(0, 0), (2, 1)]
        loader.fails_at = 3
        with pytest.raises(KeyError):
            list(loader)
