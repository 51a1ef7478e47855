"""libfarandole.so: where it is, its functions, and its errors as exceptions.

Nothing here calls back into Python.
"""

from __future__ import annotations

import os
import shutil
from ctypes import CDLL, PyDLL, byref, sizeof
from typing import Callable, Iterator

from . import _abi
from .errors import Error, LibraryNotFound, make

_NAMES = ("libfarandole.so.0", "libfarandole.so")

# ---- Where it is: FARANDOLE_LIBRARY, beside this package, beside the command.


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


# ---- Its functions

_Function = Callable[..., int]


class Library:
    """The functions of libfarandole.so, without their prefix: library().rank().

    Every call releases the interpreter lock, unless they were loaded with ctypes.PyDLL.
    """

    path: str
    # Those of _abi.FUNCTIONS, for the type checker.
    version: Callable[[], bytes]
    code_name: Callable[[int], bytes]
    abi_version: _Function
    init: _Function
    shutdown: _Function
    end_with_process: _Function
    is_initialised: _Function
    rank: _Function
    size: _Function
    local_rank: _Function
    local_size: _Function
    cross_rank: _Function
    cross_size: _Function
    epoch: _Function
    last_error: _Function
    allocate: _Function
    free: _Function
    is_shared: _Function
    add_set: _Function
    remove_set: _Function
    set_size: _Function
    set_rank: _Function
    set_ranks: _Function
    set_count: _Function
    set_ids: _Function
    submit: _Function
    wait: _Function
    call: _Function
    test: _Function
    cancel: _Function
    release: _Function
    get_result: _Function
    queue_create: _Function
    queue_pop: _Function
    queue_destroy: _Function
    start_timeline: _Function
    stop_timeline: _Function
    get_counters: _Function

    def __init__(self, path: str, loader: type[CDLL] = CDLL) -> None:
        try:
            loaded = loader(path)
        except OSError as error:
            raise LibraryNotFound(f"{path} cannot be loaded: {error}") from None
        self.path = path
        for name, (result, arguments) in _abi.FUNCTIONS.items():
            try:
                function = getattr(loaded, "farandole_" + name)
            except AttributeError:
                raise LibraryNotFound(f"{path} has no farandole_{name}: it is too old") from None
            function.restype = result
            function.argtypes = arguments
            setattr(self, name, function)
        found = self.abi_version()
        if found != _abi.ABI_VERSION:
            raise LibraryNotFound(
                f"{path} has ABI version {found}, this package needs {_abi.ABI_VERSION}: "
                "take both from one release"
            )


_library: Library | None = None
_quick: Library | None = None


def library() -> Library:
    """The library, loaded at the first call."""
    global _library
    if _library is None:
        _library = Library(find_library())
    return _library


def quick_library() -> Library:
    """The same without releasing the interpreter lock, for calls that never wait."""
    global _quick
    if _quick is None:
        _quick = Library(library().path, PyDLL)
    return _quick


def library_version() -> str:
    return library().version().decode()


# ---- Its errors


def exception_of(info: _abi.ErrorInfo, code: int) -> Error:
    """The library's description of a failure as an exception; the texts are copied."""

    def text(value: bytes | None) -> str:
        return (value or b"").decode("utf-8", "replace")

    return make(code, text(info.message), info.rank, text(info.host), text(info.tensor))


def last_error(code: int) -> Error:
    """This thread's last failure as an exception."""
    info = _abi.ErrorInfo(struct_size=sizeof(_abi.ErrorInfo))
    library().last_error(byref(info))
    return exception_of(info, code)


def check(code: int) -> None:
    if code != _abi.OK:
        raise last_error(code)


def result_of(handle: int) -> _abi.ResultInfo:
    """The library's description of an operation; valid until the handle is released."""
    info = _abi.ResultInfo(struct_size=sizeof(_abi.ResultInfo))
    check(library().get_result(handle, byref(info)))
    return info
