"""The production index, in Redis, in one of two layouts."""

from typing import Literal

from neardup.index.protocol import Bandings, Codes
from neardup.index.redis.base import RedisIndex
from neardup.index.redis.client import connect
from neardup.index.redis.compact import Compact
from neardup.index.redis.documented import Documented

Layout = Literal["documented", "compact"]
LAYOUTS: dict[Layout, type[Documented | Compact]] = {"documented": Documented, "compact": Compact}


async def open_redis(url: str, bandings: Bandings, codes: Codes, layout: Layout = "documented") -> RedisIndex:
    """The index in the Redis or the Redis cluster at `url`.  Raises as `connect` does."""
    return LAYOUTS[layout](await connect(url), bandings, codes)
