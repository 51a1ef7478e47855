"""The older name of oneCCL's bindings; see oneccl_bindings_for_pytorch."""

from farandole.c10d import register_ccl

__version__ = "0.0.0+farandole"

register_ccl()
