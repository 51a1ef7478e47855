"""Runs the functions case_… of a rank's script: all, or those named on the command line."""

from __future__ import annotations

import sys
from typing import Any


def run(namespace: dict[str, Any]) -> None:
    cases = {name: each for name, each in namespace.items() if name.startswith("case_")}
    wanted = sys.argv[1:] or list(cases)
    for name in wanted:
        print("case", name, flush=True)
        cases[name]()
    print("all cases passed", flush=True)


class raises:
    """with raises(ValueError, "text"): … fails unless the block raises that, with the texts."""

    def __init__(self, kind: type[BaseException], *texts: str) -> None:
        self.kind = kind
        self.texts = texts

    def __enter__(self) -> raises:
        return self

    def __exit__(self, kind: Any, value: Any, traceback: Any) -> bool:
        assert kind is not None, f"{self.kind.__name__} was not raised"
        if not issubclass(kind, self.kind):
            return False
        for text in self.texts:
            assert text in str(value), f"{text!r} is not in: {value}"
        return True
