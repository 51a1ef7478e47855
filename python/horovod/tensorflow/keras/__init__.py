"""horovod.tensorflow.keras: farandole.tensorflow.keras under its name."""

from __future__ import annotations

import sys

from farandole.tensorflow.keras import *
from farandole.tensorflow.keras import callbacks, elastic
from horovod import __version__

for _name, _module in {
    "callbacks": callbacks,
    "elastic": elastic,
}.items():
    sys.modules[f"{__name__}.{_name}"] = _module
