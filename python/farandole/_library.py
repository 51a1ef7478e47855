"""Where libfarandole.so is: FARANDOLE_LIBRARY, beside this package, beside the command."""

from __future__ import annotations

import os
import shutil
from typing import Iterator

from .errors import LibraryNotFound

_NAMES = ("libfarandole.so.0", "libfarandole.so")


def _folders() -> Iterator[str]:
    package = os.path.dirname(os.path.realpath(__file__))
    yield os.path.join(package, "_tree", "lib")  # a wheel
    source = os.path.dirname(os.path.dirname(package))
    yield os.path.join(source, "build", "lib")  # the source tree: python/farandole beside build
    above = package
    while os.path.dirname(above) != above:  # an installed tree: <prefix>/lib/…/farandole
        above = os.path.dirname(above)
        if os.path.basename(above) in ("lib", "lib64"):
            yield above
    command = shutil.which("farandole")
    if command:
        tree = os.path.dirname(os.path.dirname(os.path.realpath(command)))
        yield os.path.join(tree, "lib")
        yield os.path.join(tree, "lib64")


def find_library() -> str:
    """The path of the library, or LibraryNotFound with the places that were looked at."""
    given = os.environ.get("FARANDOLE_LIBRARY")
    if given:
        if not os.path.isfile(given):
            raise LibraryNotFound(f"FARANDOLE_LIBRARY={given}: there is no such file")
        return given
    looked: list[str] = []
    for folder in _folders():
        for name in _NAMES:
            path = os.path.join(folder, name)
            if os.path.isfile(path):
                return path
        looked.append(folder)
    raise LibraryNotFound(
        "libfarandole.so was not found: set FARANDOLE_LIBRARY to its path, or put the command "
        "`farandole` on PATH. Looked in " + ", ".join(looked)
    )
