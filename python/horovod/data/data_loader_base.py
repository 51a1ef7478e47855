"""BaseDataLoader, and a mixin that reads ahead in a thread."""

from __future__ import annotations

import queue
import threading
from typing import Any, Iterator


class BaseDataLoader:
    """Subclasses define __len__ and _iterate."""

    def __len__(self) -> int:
        raise NotImplementedError

    def _iterate(self) -> Iterator[Any]:
        raise NotImplementedError

    def _process_batch(self, batch: Any) -> Any:
        return batch

    def __iter__(self) -> Iterator[Any]:
        for batch in self._iterate():
            yield self._process_batch(batch)


class _Failure:
    def __init__(self, error: BaseException) -> None:
        self.error = error


_END = object()


class AsyncDataLoaderMixin:
    """Put before a loader: batches are made in a thread, up to that many ahead; 0: none."""

    def __init__(
        self,
        async_loader_queue_size: int = 64,
        debug_data_loader: bool = False,
        *args: Any,
        **kwargs: Any,
    ) -> None:
        self.async_loader_queue_size = async_loader_queue_size
        self.debug_data_loader = debug_data_loader
        self._stop: threading.Event | None = None
        super().__init__(*args, **kwargs)

    def close_async_loader(self) -> None:
        """Ends the thread of an iteration that was left early."""
        if self._stop is not None:
            self._stop.set()

    def __iter__(self) -> Iterator[Any]:
        if self.async_loader_queue_size <= 0:
            for batch in self._iterate():  # type: ignore[attr-defined]
                yield self._process_batch(batch)  # type: ignore[attr-defined]
            return
        self.close_async_loader()
        ahead: queue.Queue[Any] = queue.Queue(self.async_loader_queue_size)
        stop = self._stop = threading.Event()

        def put(value: Any) -> bool:
            while not stop.is_set():
                try:
                    ahead.put(value, timeout=0.1)
                    return True
                except queue.Full:
                    pass
            return False

        def read() -> None:
            try:
                for batch in self._iterate():  # type: ignore[attr-defined]
                    if not put(batch):
                        return
                put(_END)
            except BaseException as error:
                put(_Failure(error))

        thread = threading.Thread(target=read, name="horovod-data", daemon=True)
        thread.start()
        try:
            while True:
                value = ahead.get()
                if value is _END:
                    return
                if isinstance(value, _Failure):
                    raise value.error
                yield self._process_batch(value)  # type: ignore[attr-defined]
        finally:
            stop.set()
