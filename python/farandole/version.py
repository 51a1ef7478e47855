"""The version of the Python package; the library's own is `farandole._abi.library_version()`."""

__version__ = "0.1.0"
