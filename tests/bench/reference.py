"""The reference: the same work done by a straightforward asyncio program.

`python -m tests.bench.reference ENDPOINT REDIS_URL MANIFEST COUNT` prints a `Measured`, as JSON.  aioboto3 reads the
pages, 32 at a time; a regular expression finds the words; a loop over the bits sums up the SimHash; SUNION and HMGET
fetch every candidate.  The Redis keys are neardup's.

The words are `\\w+`, as in most published code.  That pattern drops the vowel signs and so splits Indic words.  With
fewer distinct words the SimHash is cheaper, but all stories become similar, so candidates and false pairs grow with the
corpus.
"""

import asyncio
import html
import json
import re
import sys
from collections import Counter
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aioboto3  # type: ignore[import-untyped]
import click
import xxhash
from botocore.config import Config
from msgspec.structs import asdict
from redis.asyncio import Redis

from tests.bench.pages import LANGUAGE, read_ids
from tests.support.resource_meter import Measured, metered

BUCKET = "stories"
CONCURRENCY = 32
BITS = 128
BANDS = 8
MAX_HAMMING = 3
HASHES = f"simhashes:{LANGUAGE}"


@asynccontextmanager
async def s3_client(endpoint: str) -> AsyncIterator[Any]:
    """A client with a connection for each concurrent request."""
    config = Config(max_pool_connections=CONCURRENCY, s3={"addressing_style": "path"})
    async with aioboto3.Session().client("s3", endpoint_url=endpoint, region_name="us-east-1", config=config) as s3:
        yield s3


async def fetch(s3: Any, story_id: int) -> bytes:
    reply = await s3.get_object(Bucket=BUCKET, Key=f"{LANGUAGE}/{story_id}.html")
    return bytes(await reply["Body"].read())


def text_of(page: str) -> str:
    return html.unescape(re.sub(r"<[^>]+>", " ", page))


def words_of(text: str) -> list[str]:
    return re.findall(r"\w+", text)


def simhash(words: Iterable[str]) -> int:
    """Each word votes on each bit, weighted by its frequency."""
    votes = [0] * BITS
    for word, frequency in Counter(words).items():
        digest = xxhash.xxh3_128_intdigest(word.encode())
        for bit in range(BITS):
            votes[bit] += frequency if digest >> bit & 1 else -frequency
    return sum(1 << bit for bit, vote in enumerate(votes) if vote > 0)


def band_keys(digits: str) -> list[str]:
    width = len(digits) // BANDS
    return [f"{LANGUAGE}:{band}:{digits[band * width : (band + 1) * width].upper()}" for band in range(BANDS)]


async def matches(redis: Any, simhash_value: int, bands: list[str]) -> list[int]:
    """The indexed stories within the Hamming distance."""
    candidates = list(await redis.sunion(bands))
    if not candidates:
        return []
    hashes = await redis.hmget(HASHES, candidates)
    return [
        int(candidate)
        for candidate, digits in zip(candidates, hashes, strict=True)
        if (simhash_value ^ int(digits, 16)).bit_count() <= MAX_HAMMING
    ]


async def insert(redis: Any, story_id: int, digits: str, bands: list[str]) -> None:
    async with redis.pipeline() as pipe:
        for band in bands:
            pipe.sadd(band, story_id)
        pipe.hset(HASHES, story_id, digits)
        await pipe.execute()


async def process(s3: Any, redis: Any, story_id: int) -> int:
    """Process one story; returns the number of its matches."""
    page = (await fetch(s3, story_id)).decode()
    value = simhash(words_of(text_of(page)))
    digits = f"{value:032x}"
    bands = band_keys(digits)
    found = await matches(redis, value, bands)
    await insert(redis, story_id, digits, bands)
    return len(found)


async def run(endpoint: str, redis_url: str, ids: list[int]) -> Measured:
    """Process all stories, CONCURRENCY at a time."""
    slots = asyncio.Semaphore(CONCURRENCY)

    async def one(story_id: int) -> int:
        async with slots:
            return await process(s3, redis, story_id)

    measured = Measured(len(ids))
    async with s3_client(endpoint) as s3, Redis.from_url(redis_url) as redis, metered(measured):
        measured.pairs = sum(await asyncio.gather(*map(one, ids)))
    return measured


if __name__ == "__main__":
    chosen = read_ids(Path(sys.argv[3]))[: int(sys.argv[4])]
    click.echo(json.dumps(asdict(asyncio.run(run(sys.argv[1], sys.argv[2], chosen)))))
