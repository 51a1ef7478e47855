"""The backend "farandole" of torch.distributed, in pure Python.

import farandole.c10d                       # not needed under `farandole run`
torch.distributed.init_process_group("farandole")
"""

from __future__ import annotations

from .registration import register, register_ccl

__all__ = ["register", "register_ccl"]

register()
