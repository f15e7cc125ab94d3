"""Finds the stories that hold a sentence: the passage index nominates, the texts of the stories decide.

The index has a sample of the word 4-grams of each story, and a sentence is looked up by all of its own.  One of 27
words or more always meets a sample of a story that holds it; a shorter one may be missed.
"""

import asyncio
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import numpy as np

from neardup.core.fingerprint.word_hashes import grams_of, hashed, hashes_of
from neardup.ledger import Ledger, read, versions
from neardup.pipeline.passage_sync import PassageSync, open_passages


async def nominate(path: Path, words: Sequence[bytes], most_holders: int) -> list[int]:
    """The ids of the stories of a ledger, ascending, that may hold a sentence, given as its normalised words.

    The 4-grams of more than `most_holders` stories do not count.  Raises Fatal for the passage index of another ledger,
    and PassagesDamaged.
    """
    hashes = np.unique(hashes_of(grams_of(hashed(words).hashes)))
    with closing(Ledger(path, read)) as ledger, closing(await open_passages(ledger)) as index:
        await PassageSync(index, ledger).catch_up()
        numbers = await asyncio.to_thread(index.holders, hashes, most_holders)
        found = await ledger.do(versions.stories_of, numbers.tolist())
    return sorted(story_id for story_id, _ in found.values())


def share_held(sentence: Sequence[bytes], story: Sequence[bytes]) -> float:
    """The share, 0 to 1, of the word 4-grams of a sentence that occur in a story."""
    own, others = (grams_of(hashed(words).hashes) for words in (sentence, story))
    return float(np.isin(own, others).mean()) if len(own) else 0.0
