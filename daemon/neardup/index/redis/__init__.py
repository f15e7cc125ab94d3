"""The production index, in Redis, in one of two layouts."""

from typing import TYPE_CHECKING, Literal, get_args

from neardup.errors import needs_extra
from neardup.index.protocol import Bandings, Codes

if TYPE_CHECKING:
    from neardup.index.redis.base import RedisIndex

Layout = Literal["documented", "compact"]
LAYOUTS: tuple[Layout, ...] = get_args(Layout)


async def open_redis(url: str, bandings: Bandings, codes: Codes, layout: Layout = "documented") -> "RedisIndex":
    """The index in the Redis or the Redis cluster at `url`.

    Raises as `connect` does, and Misuse if the libraries of Redis are not installed.
    """
    with needs_extra("redis", "index.url"):
        from neardup.index.redis.client import connect  # noqa: PLC0415 - loads redis, which is optional
        from neardup.index.redis.layouts import Compact, Documented  # noqa: PLC0415 - likewise

    index_class = Compact if layout == "compact" else Documented
    return index_class(await connect(url), bandings, codes)
