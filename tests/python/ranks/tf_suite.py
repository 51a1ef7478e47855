"""The cases of several scripts in one process, since TensorFlow takes its time to start."""

from __future__ import annotations

import importlib
import sys

modules = sys.argv[1:]
del sys.argv[1:]
for name in modules:
    importlib.import_module(name)
