"""Stands in for oneCCL's bindings where they are not installed: "ccl" is Farandole's."""

from farandole.c10d import register_ccl

__version__ = "0.0.0+farandole"

register_ccl()
