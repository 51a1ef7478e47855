"""sees.py MODULE...: from where each module comes, or that it is not there."""

import importlib
import sys

for name in sys.argv[1:]:
    try:
        module = importlib.import_module(name)
    except ImportError as error:
        print(f"{name}: no ({error})")
        continue
    print(f"{name}: {module.__file__} {getattr(module, 'mark', '')}")
