"""suite.py SCRIPT[:ARG,…]…: several scripts in one process.

PyTorch and TensorFlow take their time to start.
"""

from __future__ import annotations

import importlib
import sys

for words in sys.argv[1:]:
    name, _, arguments = words.partition(":")
    sys.argv[1:] = arguments.split(",") if arguments else []
    importlib.import_module(name)
