"""`plan` projects the memory of a real Redis within 15 percent, and that of a real Valkey within 10."""

from pathlib import Path

import pytest
import redis
from neardup.config import Detection
from neardup.core.candidates.banding import FingerprintArrays
from neardup.index.redis import Layout, open_redis
from neardup.index.redis.base import RedisIndex
from neardup.index.redis.documented import INTSET_ENTRIES
from neardup.index.size import EMPTY_BYTES, REDIS_PROJECTIONS, valkey_bytes
from neardup.insights.plan.project import Corpus, index_size
from neardup.insights.plan.sample import TYPICAL
from neardup.languages import LANGUAGES
from neardup.records import BandedFingerprint, Change, Language

from tests.support.languages import CODES, HINDI, TELUGU
from tests.support.servers import redis_server
from tests.support.synthetic_pages import pages_of

BATCH = 256
BUILT = {HINDI: 16_000, TELUGU: 4_000}
GROWN = {HINDI: 6_000, TELUGU: 1_500}


def changes_of(page: FingerprintArrays, start: int) -> list[Change]:
    return [
        Change(
            int(page.numbers[n]),
            int(page.ids[n]),
            None,
            BandedFingerprint(LANGUAGES[page.languages[n]], page.simhashes[n].tobytes(), page.signatures[n].tobytes()),
            int(page.numbers[n]),
        )
        for n in range(start, min(start + BATCH, len(page)))
    ]


async def grow(index: RedisIndex, sizes: dict[Language, int]) -> None:
    async for page in pages_of(sizes):
        for start in range(0, len(page), BATCH):
            batch = changes_of(page, start)
            await index.apply(batch, batch[-1].seq)


@pytest.mark.parametrize("layout", REDIS_PROJECTIONS)
@pytest.mark.parametrize(("sizes", "grown"), [(BUILT, False), (GROWN, True)])
async def test_a_server_takes_as_much_as_projected(
    redis_program: str, tmp_path: Path, layout: Layout, sizes: dict[Language, int], grown: bool
) -> None:
    bandings = Detection().bandings(LANGUAGES)
    with (
        redis_server(tmp_path, "--set-max-intset-entries", str(INTSET_ENTRIES), program=redis_program) as url,
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
    size = index_size(Corpus(sizes, TYPICAL, Detection()), layout, grown=grown)
    assert sum(tier.keys for each in size.tiers.values() for tier in each.values()) == pytest.approx(keys, rel=0.1)
    total, most = (size.total, 0.15) if redis_program == "redis" else (valkey_bytes(size, layout, grown=grown), 0.1)
    assert used == pytest.approx(total - EMPTY_BYTES, rel=most), "`plan` projects another size"
