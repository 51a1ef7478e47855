"""The version: CMake and tools/wheel read it here. Tests compare it with the library's."""

__version__ = "0.1.0"
