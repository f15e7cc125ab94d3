"""The production index, in Redis, in either of its layouts."""

from typing import Literal

from daemon.index import Bandings
from daemon.index.compact import Compact
from daemon.index.documented import Documented
from daemon.index.redis_client import connect
from daemon.index.redis_index import RedisIndex

Layout = Literal["documented", "compact"]
LAYOUTS: dict[Layout, type[Documented | Compact]] = {"documented": Documented, "compact": Compact}


async def open_redis(url: str, bandings: Bandings, layout: Layout = "documented") -> RedisIndex:
    """The index in the Redis or the cluster at `url`.  Raises as `connect` does."""
    client, cluster = await connect(url)
    return LAYOUTS[layout](client, bandings, cluster=cluster)
