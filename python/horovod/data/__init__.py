"""Data loaders, plain and asynchronous."""

from __future__ import annotations

from .data_loader_base import AsyncDataLoaderMixin, BaseDataLoader
