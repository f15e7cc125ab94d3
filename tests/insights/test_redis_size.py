"""What `plan` says of Redis's memory, beside a real Redis."""

from pathlib import Path

import pytest
import redis
from neardup.config import Detection
from neardup.core.candidates.fingerprint_arrays import Columns
from neardup.index import packed_buckets
from neardup.index.redis import Layout, open_redis
from neardup.index.redis.base import RedisIndex
from neardup.index.redis.documented import INTSET_ENTRIES
from neardup.insights.plan import redis_size
from neardup.insights.plan.profile import TYPICAL
from neardup.languages import LANGUAGES
from neardup.records import Banded, Change, Language

from tests.support.languages import CODES, HINDI, TELUGU
from tests.support.servers import redis_server
from tests.support.synthetic_pages import pages_of

BATCH = 256
BUILT = {HINDI: 16_000, TELUGU: 4_000}
GROWN = {HINDI: 6_000, TELUGU: 1_500}


def changes_of(page: Columns, start: int) -> list[Change]:
    return [
        Change(
            int(page.numbers[n]),
            int(page.ids[n]),
            None,
            Banded(LANGUAGES[page.languages[n]], page.simhashes[n].tobytes(), page.signatures[n].tobytes()),
            int(page.numbers[n]),
        )
        for n in range(start, min(start + BATCH, len(page)))
    ]


async def grow(index: RedisIndex, sizes: dict[Language, int]) -> None:
    async for page in pages_of(sizes):
        for start in range(0, len(page), BATCH):
            batch = changes_of(page, start)
            await index.apply(batch, batch[-1].seq)


@pytest.mark.parametrize("layout", redis_size.LAYOUTS)
@pytest.mark.parametrize(("sizes", "grown"), [(BUILT, False), (GROWN, True)])
async def test_redis_takes_as_much_as_projected(
    tmp_path: Path, layout: Layout, sizes: dict[Language, int], grown: bool
) -> None:
    bandings = Detection().bandings(LANGUAGES)
    with (
        redis_server(tmp_path, "--set-max-intset-entries", str(INTSET_ENTRIES)) as url,
        redis.Redis.from_url(url) as client,
    ):
        index = await open_redis(url, bandings, CODES, layout)
        before = client.info("memory")["used_memory"]
        await index.clear("l", "v", sizes)
        if grown:
            await grow(index, sizes)
        else:
            async for _ in index.build(pages_of(sizes), tmp_path):
                pass
        await index.close()
        used, keys = client.info("memory")["used_memory"] - before, client.dbsize()
    bits = packed_buckets.bits_for(sizes, LANGUAGES)
    tiers = [
        tier
        for one, n in sizes.items()
        for tier in redis_size.LAYOUTS[layout](one, n, TYPICAL[one], bandings[one], bits[one], grown=grown).values()
    ]
    assert sum(tier.keys for tier in tiers) == pytest.approx(keys, rel=0.1)
    assert redis_size.total(tiers) - redis_size.EMPTY == pytest.approx(used, rel=0.15)
