"""What Farandole costs in TensorFlow and Keras.

    farandole run -np 2 python bench/python/tensorflow_figures.py [--rounds 9] [--no-fit]
    python bench/python/tensorflow_figures.py --import

Under the launcher: a named allreduce inside tf.function, beside the same function with tf.identity
and beside the operation itself; then Keras's fit(), beside ranks that train on their own and ranks
that exchange nothing and only meet after every step: what these lose, they lose by waiting for the
slower one. What is compared lives in the same processes and takes turns within every round; figures are medians.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from typing import Any, Callable, Dict, List

parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
parser.add_argument("--rounds", type=int, default=9)
parser.add_argument("--steps", type=int, default=60, help="of fit(), per round")
parser.add_argument("--batch-size", type=int, default=64, help="per rank")
parser.add_argument("--no-operation", action="store_true")
parser.add_argument("--no-fit", action="store_true")
parser.add_argument("--import", dest="imports", action="store_true")


def median(values: List[float]) -> float:
    return statistics.median(values)


def operation(tf: Any, fdl: Any, rounds: int, say: Callable[[str], None]) -> None:
    import numpy

    import farandole.core as core
    from farandole import _abi
    from farandole.handles import Request, submit

    repeat = 300
    for count in (1, 256, 16384):
        value = tf.ones([count])
        memory = numpy.ones(count, numpy.float32)
        place = memory.ctypes.data
        request = Request(
            _abi.ALLREDUCE, input=place, output=place, shape=(count,), name=f"itself.{count}",
            dtype=int(core.DType.FLOAT32), prescale=0.5, will_wait=True,
        )
        reduce = tf.function(lambda x: fdl.allreduce(x, op=fdl.Average, name="in.function"))
        identity = tf.function(lambda x: tf.identity(x))
        forms: Dict[str, Callable[[], Any]] = {
            "allreduce": lambda: reduce(value),
            "identity": lambda: identity(value),
            "itself": lambda: submit(request).wait(),
            "meeting": lambda: (identity(value), submit(request).wait()),
        }
        times: Dict[str, List[float]] = {name: [] for name in forms}
        for round in range(rounds + 1):
            for name, call in forms.items():
                calls: List[float] = []
                core.barrier()
                for _ in range(repeat):
                    begin = time.perf_counter()
                    call()
                    calls.append(time.perf_counter() - begin)
                if round:  # the first one warms up
                    times[name].append(median(calls) * 1e6)
        above = median(
            [a - b - c for a, b, c in zip(times["allreduce"], times["identity"], times["itself"])]
        )
        rest = median([a - b for a, b in zip(times["allreduce"], times["meeting"])])
        say(
            f"allreduce of {4 * count} B in tf.function {median(times['allreduce']):.1f} us, "
            f"tf.identity {median(times['identity']):.1f} us, the operation itself "
            f"{median(times['itself']):.1f} us: {above:.1f} us above both, {rest:.1f} us above "
            "one after the other"
        )


def network(tf: Any) -> Any:
    layers = tf.keras.layers
    return tf.keras.Sequential(
        [
            layers.Conv2D(16, 3, activation="relu"),
            layers.MaxPooling2D(),
            layers.Conv2D(32, 3, activation="relu"),
            layers.MaxPooling2D(),
            layers.Flatten(),
            layers.Dense(128, activation="relu"),
            layers.Dense(10),
        ]
    )


def fit(tf: Any, fdl: Any, args: argparse.Namespace, say: Callable[[str], None]) -> None:
    import farandole.core as core
    from farandole import _abi
    from farandole.handles import Request, submit

    images = tf.random.uniform([args.batch_size * args.steps, 28, 28, 1])
    labels = tf.random.uniform([args.batch_size * args.steps], maxval=10, dtype=tf.int64)
    data = tf.data.Dataset.from_tensor_slices((images, labels)).batch(args.batch_size).cache()
    # Else the end of fit() waits for tf.data's tuning thread, which sleeps for 10 ms, 20 ms, 40 ms …:
    # fit() would take 0.63, 1.27 or 2.55 s.
    options = tf.data.Options()
    options.autotune.enabled = False
    data = data.with_options(options)
    token = Request(_abi.BARRIER, name="meeting", will_wait=True)
    meet = tf.keras.callbacks.LambdaCallback(
        on_train_batch_end=lambda batch, logs: submit(token).wait()
    )
    speeds: Dict[str, List[float]] = {}
    models: Dict[str, Any] = {}
    for form in ("together", "alone", "meeting"):
        optimizer = tf.keras.optimizers.Adam(0.001)
        if form == "together":
            optimizer = fdl.DistributedOptimizer(optimizer)
        models[form] = network(tf)
        loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        # Without XLA on both sides: the same computation.
        models[form].compile(optimizer, loss=loss, jit_compile=False)
        models[form].fit(data, verbose=0)
        speeds[form] = []
    for round in range(args.rounds):
        for form in sorted(models, reverse=bool(round % 2)):
            callbacks = [meet] if form == "meeting" else []
            core.barrier()
            begin = time.perf_counter()
            models[form].fit(data, verbose=0, callbacks=callbacks)
            mine = args.batch_size * args.steps / (time.perf_counter() - begin)
            speeds[form].append(float(fdl.allreduce(mine, op=fdl.Sum, name="speed")))

    def ratio(form: str, other: str) -> float:
        return median([a / b for a, b in zip(speeds[form], speeds[other])])

    say(
        f"fit() on {fdl.size()} ranks: {median(speeds['together']):.0f} images/s together, "
        f"{median(speeds['alone']):.0f} each on its own: {ratio('together', 'alone'):.3f}; "
        f"ranks that only meet {ratio('meeting', 'alone'):.3f}: {ratio('together', 'meeting'):.3f} "
        "of these"
    )


def under_the_launcher(args: argparse.Namespace) -> None:
    import tensorflow as tf

    import farandole.tensorflow as fdl

    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    fdl.init()

    def say(text: str) -> None:
        if fdl.rank() == 0:
            print(text, flush=True)

    if not args.no_operation:
        operation(tf, fdl, args.rounds, say)
    if not args.no_fit:
        fit(tf, fdl, args, say)


IMPORT = """
import time, tensorflow
begin = time.perf_counter()
import farandole.tensorflow
print((time.perf_counter() - begin) * 1e3)
"""
BUILD = """
import time, tensorflow
from farandole.tensorflow import build_ops
begin = time.perf_counter()
build_ops.library_path()
print(time.perf_counter() - begin)
"""


def answer(program: str, **variables: str) -> float:
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", **variables}
    environment["PYTHONPATH"] = os.path.join(root, "python")
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, check=True, stdout=subprocess.PIPE
    )
    return float(done.stdout.split()[-1])


def imports(rounds: int) -> None:
    answer(IMPORT)
    added = median([answer(IMPORT) for _ in range(rounds)])
    print(f"import farandole.tensorflow adds {added:.0f} ms to import tensorflow")
    with tempfile.TemporaryDirectory() as folder:
        print(f"compiling the operations takes {answer(BUILD, FARANDOLE_CACHE=folder):.0f} s")


if __name__ == "__main__":
    given = parser.parse_args()
    if given.imports:
        imports(min(5, given.rounds))
    else:
        under_the_launcher(given)
