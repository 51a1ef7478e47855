"""horovod.keras: farandole.keras under its name."""

from __future__ import annotations

import sys

from farandole.keras import *
from farandole.keras import callbacks, elastic
from horovod import __version__

for _name, _module in {
    "callbacks": callbacks,
    "elastic": elastic,
}.items():
    sys.modules[f"{__name__}.{_name}"] = _module
