"""Reads the fingerprints that a sweep compares."""

import asyncio
from collections.abc import Mapping

from neardup.core.candidates.top_k import MAX_STORIES, LanguageFingerprints
from neardup.errors import Fatal
from neardup.ledger import Ledger, versions
from neardup.records import Language

STORIES_PER_READ = 2_000  # larger pages do not fit in the processor's cache


async def load_fingerprints(
    ledger: Ledger, sizes: Mapping[Language, int], stop: asyncio.Event
) -> dict[Language, LanguageFingerprints]:
    """The fingerprints of languages with so many stories; incomplete if `stop` is set meanwhile.

    Raises Fatal for a language of more than MAX_STORIES.
    """
    for language, size in sizes.items():
        if size > MAX_STORIES:
            raise Fatal(f"{language} has {size:,} stories; a sweep takes at most {MAX_STORIES:,} of a language")
    arrays = {language: LanguageFingerprints.zeros(size) for language, size in sizes.items()}
    ends: dict[Language, int] = dict.fromkeys(sizes, 0)
    number = 0
    while not stop.is_set() and len(page := await ledger.do(versions.fingerprints_after, number, STORIES_PER_READ)):
        number = int(page.numbers[-1])
        for language, selected in page.by_language():
            if (array := arrays.get(language)) is None:
                continue
            read = slice(ends[language], ends[language] + len(selected))
            for name in LanguageFingerprints.__slots__:
                getattr(array, name)[read] = getattr(selected, name)
            ends[language] = read.stop
    return arrays
