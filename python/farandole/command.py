"""The commands of an installed wheel (`farandole`, `horovodrun`, …): those of its tree."""

from __future__ import annotations

import os
import sys
from typing import NoReturn

from .run import _command


def main() -> NoReturn:
    name = os.path.basename(sys.argv[0])
    os.execv(_command(), [name, *sys.argv[1:]])
