"""What the benchmarks share: contestants that take turns, and medians of their times."""

from __future__ import annotations

import statistics
import time
from typing import Any, Callable, Dict, List, Sequence

import torch.distributed as dist


def timed(call: Callable[[], object], repeat: int) -> float:
    """Seconds per call, all ranks starting together."""
    dist.barrier()
    begin = time.perf_counter()
    for _ in range(repeat):
        call()
    return (time.perf_counter() - begin) / repeat


def take_turns(calls: Dict[Any, Callable[[], float]], rounds: int) -> Dict[Any, List[float]]:
    """Every round asks each contestant once, in an order that changes from round to round."""
    found: Dict[Any, List[float]] = {name: [] for name in calls}
    for i in range(rounds):
        for name in list(calls) if i % 2 else list(calls)[::-1]:
            found[name].append(calls[name]())
    return found


def median_difference(one: Sequence[float], other: Sequence[float]) -> float:
    return statistics.median(a - b for a, b in zip(one, other))


def say(text: str) -> None:
    if dist.get_rank() == 0:
        print(text, flush=True)
