"""Compares stories with their packed buckets in Redis."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from itertools import chain

from neardup.index.packed_entries import STORIES_PER_READ, Entry, by_language, lacking
from neardup.index.redis.commands import batches
from neardup.index.redis.packed import PackedBuckets
from neardup.index.redis.settings import Send
from neardup.records import Change, Language


async def lacking_entries(
    send: Send, packed: PackedBuckets, stories: Sequence[Change]
) -> AsyncIterator[tuple[Language, list[Entry]]]:
    """The entries that packed buckets lack of these stories, for some stories of a language at a time.

    Raises IndexDamaged for a bucket that does not consist of numbers.
    """
    for language, found in by_language(stories).items():
        for chunk in batches(found, STORIES_PER_READ):
            request = packed.request(language, [banded for _, banded in chunk])
            contents = list(chain.from_iterable(await send(packed.reads(request))))
            numbers = [stories[position].number for position, _ in chunk]
            entries = await asyncio.to_thread(lacking, request, numbers, contents)
            yield language, [(chunk[nth][0], bucket) for nth, bucket in entries]
