"""horovod.keras: farandole.keras under its name."""

from __future__ import annotations

import sys

from farandole.keras import *  # noqa: F401,F403
from farandole.keras import callbacks, elastic  # noqa: F401

from horovod import __version__  # noqa: F401

for _name, _module in {
    "callbacks": callbacks,
    "elastic": elastic,
}.items():
    sys.modules[f"{__name__}.{_name}"] = _module
