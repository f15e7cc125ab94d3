"""Loads single keys in batches."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class BatchLoader(Generic[K, V]):
    """Calls `load` with all the keys that were requested while its previous call was running."""

    def __init__(self, load: Callable[[Sequence[K]], Awaitable[Mapping[K, V]]]) -> None:
        self._load = load
        self._waiting: list[tuple[K, asyncio.Future[V | None]]] = []
        self._loading: asyncio.Task[None] | None = None

    async def __call__(self, key: K) -> V | None:
        """The value of a key, or None if `load` returns none.  Raises what `load` raises."""
        value: asyncio.Future[V | None] = asyncio.get_running_loop().create_future()
        self._waiting.append((key, value))
        if self._loading is None:
            self._loading = asyncio.create_task(self._load_all())
        return await value

    async def _load_all(self) -> None:
        while self._waiting:
            batch, self._waiting = self._waiting, []
            values: Mapping[K, V] = {}
            failure: Exception | None = None
            try:
                values = await self._load([key for key, _ in batch])
            except Exception as error:  # noqa: BLE001 - raised to each caller
                failure = error
            for key, value in batch:
                if value.done():  # its caller was cancelled
                    continue
                if failure is None:
                    value.set_result(values.get(key))
                else:
                    value.set_exception(failure)
        self._loading = None
