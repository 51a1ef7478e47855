"""Elastic names, for a fixed number of ranks."""

from __future__ import annotations

from farandole.elastic import (  # noqa: F401
    HostsUpdatedInterrupt,
    ObjectState,
    State,
    run_fn,
)
from farandole.errors import OperationFailed as HorovodInternalError  # noqa: F401
