"""Pages of synthetic stories, with bucket sizes as skewed as those of prose."""

from collections.abc import AsyncIterator, Mapping

import numpy as np
from neardup.core.candidates.banding import FingerprintArrays
from neardup.records import Language

from tests.support import synthetic
from tests.support.languages import NAMES, NUMBER_OF
from tests.support.synthetic_stories import FIRST_ID, ID_STEP


async def pages_of(sizes: Mapping[Language, int]) -> AsyncIterator[FingerprintArrays]:
    """Pages of `sizes[language]` stories of each language, numbered from 1."""
    number = 1
    for language, count in sizes.items():
        for part in synthetic.draw_chunks(np.random.default_rng(1), synthetic.prose(language), count):
            numbers = np.arange(number, number := number + len(part))
            yield FingerprintArrays(
                numbers.astype(np.uint32),
                FIRST_ID + ID_STEP * numbers,
                np.full(len(part), NUMBER_OF[language], np.uint8),
                np.ascontiguousarray(part.simhashes).view(np.uint64),
                part.signatures,
                np.ones(len(part), np.bool_),
                NAMES,
            )
