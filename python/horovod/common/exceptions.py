"""What Horovod raises, as Farandole's exceptions."""

from __future__ import annotations

from farandole.elastic import HostsUpdatedInterrupt  # noqa: F401
from farandole.errors import OperationFailed as HorovodInternalError  # noqa: F401


class HorovodVersionMismatchError(ImportError):
    """Framework and extension of different versions: cannot happen here, there is no extension."""


class WorkersAvailableException(RuntimeError):
    """More hosts than before: cannot happen here, the number of ranks is fixed."""
