"""HorovodBasics: the basics as methods of an object."""

from __future__ import annotations

from typing import Any

from farandole import basics as _basics


class HorovodBasics:
    """init(), rank(), … of Farandole; the extension that Horovod loads here does not exist."""

    def __init__(self, pkg_path: Any = None, *args: Any) -> None:
        pass

    def __getattr__(self, name: str) -> Any:
        if name in _basics.__all__:
            return getattr(_basics, name)
        raise AttributeError(f"HorovodBasics has no attribute {name!r}")
