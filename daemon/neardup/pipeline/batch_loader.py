"""Questions that come one by one, asked together."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Coalesced(Generic[K, V]):
    """Asks `ask` for all the keys that have come while it was asked for others."""

    def __init__(self, ask: Callable[[Sequence[K]], Awaitable[Mapping[K, V]]]) -> None:
        self._ask = ask
        self._waiting: list[tuple[K, asyncio.Future[V | None]]] = []
        self._asking: asyncio.Task[None] | None = None

    async def __call__(self, key: K) -> V | None:
        """What `ask` gives for the key, or None; raises what it raises."""
        answer: asyncio.Future[V | None] = asyncio.get_running_loop().create_future()
        self._waiting.append((key, answer))
        if self._asking is None:
            self._asking = asyncio.create_task(self._ask_all())
        return await answer

    async def _ask_all(self) -> None:
        while self._waiting:
            asked, self._waiting = self._waiting, []
            answers: Mapping[K, V] = {}
            failed: Exception | None = None
            try:
                answers = await self._ask([key for key, _ in asked])
            except Exception as error:  # noqa: BLE001 - raised again where the keys are awaited
                failed = error
            for key, answer in asked:
                if answer.done():  # whoever awaited it was cancelled
                    continue
                if failed is None:
                    answer.set_result(answers.get(key))
                else:
                    answer.set_exception(failed)
        self._asking = None
