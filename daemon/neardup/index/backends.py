"""The table of index backends: which URL scheme opens which index."""

from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

from neardup.config import Index as IndexConfig
from neardup.index.protocol import Bandings, Index
from neardup.index.redis import open_redis
from neardup.index.sqlite import SqliteIndex

Opener = Callable[[IndexConfig, Path, Bandings], Awaitable[Index]]


async def _open_sqlite(config: IndexConfig, ledger: Path, bandings: Bandings) -> Index:
    return SqliteIndex(ledger, bandings)


async def _open_redis(config: IndexConfig, ledger: Path, bandings: Bandings) -> Index:
    return await open_redis(config.url, bandings, config.layout)


# The configuration accepts these schemes and no others (neardup.config).
OPENERS: Mapping[str, Opener] = {
    "sqlite": _open_sqlite,
    "redis": _open_redis,
    "rediss": _open_redis,
    "unix": _open_redis,
}


async def open_index(config: IndexConfig, ledger: Path, bandings: Bandings) -> Index:
    """The index that `config.url` names; the embedded one is in the file of the ledger.

    Raises Fatal, Misuse or Transient as the backend does.
    """
    return await OPENERS[config.url.partition(":")[0]](config, ledger, bandings)
