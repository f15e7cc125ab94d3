"""The Redis or the Redis cluster behind an index: messages, transactions, and what follows an error."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

from neardup.errors import IndexDamaged, Transient
from neardup.index.redis.client import (
    TIMEOUT_SECONDS,
    Clients,
    exchange,
    expected_replies,
    refuse_other_types,
    translate_errors,
)
from neardup.index.redis.commands import Command


class Server:
    """Sends messages; `positions` are the keys of the index's positions, which are deleted if the index is damaged."""

    def __init__(self, clients: Clients, positions: Sequence[str]) -> None:
        self.clients = clients
        self._positions = positions

    async def send(self, commands: Sequence[Command]) -> list[Any]:
        """Send commands as one message; returns their replies."""
        async with self.answers():
            with expected_replies():
                replies = await self._exchange(commands) if commands else []
                refuse_other_types(commands, replies)
        return replies

    async def _exchange(self, commands: Sequence[Command]) -> list[Any]:
        if not self.clients.is_cluster:
            return await exchange(self.clients.messages, commands)
        pipe = self.clients.messages.pipeline(transaction=False)
        for command in commands:
            pipe.execute_command(*command)  # on a cluster redis-py disables its methods for some commands
        return list(await pipe.execute())

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Any]:
        """A pipeline for one transaction; transactions must not overlap."""
        client = self.clients.transactions
        async with self.answers(client=client):
            if self.clients.is_cluster:
                await client.initialize()  # here, because a pipeline would do it in an event loop of its own
            async with client.pipeline(transaction=True) as pipe:
                yield pipe

    @asynccontextmanager
    async def answers(self, seconds: float | None = TIMEOUT_SECONDS, client: Any = None) -> AsyncIterator[None]:
        """Translate errors.  After one, a cluster's client connects again, to learn which node has which slots."""
        try:
            async with self.rebuilt_if_damaged(), translate_errors(seconds):
                yield
        except Transient:
            if self.clients.is_cluster:
                with suppress(Exception):  # of nodes that are gone
                    await (client or self.clients.messages).aclose()
            raise

    @asynccontextmanager
    async def rebuilt_if_damaged(self) -> AsyncIterator[None]:
        """Delete the positions if the index is damaged: an index without a position is rebuilt."""
        try:
            yield
        except IndexDamaged:
            async with translate_errors():
                for key in self._positions:
                    await self.clients.messages.delete(key)
            raise

    async def aclose(self) -> None:
        """Close all connections."""
        for client in {self.clients.messages, self.clients.transactions}:
            await client.aclose()
