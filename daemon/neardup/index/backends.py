"""The table of index backends: what opens each URL scheme."""

from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

from neardup.config import Index as IndexConfig
from neardup.index.protocol import Bandings, Codes, Index
from neardup.index.redis import open_redis
from neardup.index.sqlite import SqliteIndex

Opener = Callable[[IndexConfig, Path, Bandings, Codes], Awaitable[Index]]


async def _open_sqlite(config: IndexConfig, ledger: Path, bandings: Bandings, codes: Codes) -> Index:
    return SqliteIndex(ledger, bandings)


async def _open_redis(config: IndexConfig, ledger: Path, bandings: Bandings, codes: Codes) -> Index:
    return await open_redis(config.url, bandings, codes, config.layout)


# The configuration accepts these schemes and no others (neardup.config).
OPENERS: Mapping[str, Opener] = {
    "sqlite": _open_sqlite,
    "redis": _open_redis,
    "rediss": _open_redis,
    "unix": _open_redis,
}


async def open_index(config: IndexConfig, ledger: Path, bandings: Bandings, codes: Codes) -> Index:
    """The index that `config.url` names, for the languages of `bandings`; the embedded one is in the ledger's file.

    Raises Fatal, Misuse or Transient as the backend does.
    """
    return await OPENERS[config.url.partition(":")[0]](config, ledger, bandings, codes)
