"""Measures recall: copies the user's own stories by every edit, and runs the real pipeline on the copies."""

import asyncio
from collections import defaultdict
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass

from neardup.config import Config
from neardup.core.text.normalize import tokens
from neardup.insights.evaluate.bands import SHINGLES, BandingCounts, count_by_banding
from neardup.insights.evaluate.edits import EDITS
from neardup.insights.evaluate.facts import Banding, facts
from neardup.insights.evaluate.figures import Facts
from neardup.insights.evaluate.measure import measure
from neardup.insights.evaluate.plant import Corpus, plant
from neardup.insights.evaluate.sample import sample
from neardup.insights.evaluate.verdict_tables import precision_on_record
from neardup.pipeline.progress import Watch

# In one corpus, most of the work would be to verify copies of a story against each other.  Therefore the edits are
# distributed over several corpora, each with all the originals.
CORPORA = 4
BAND_STORIES = 400  # stories of a corpus whose pairs are all compared for the table of banding


@dataclass(frozen=True, slots=True)
class Progress:
    """How progress is shown: of a listing by its number of stories, and of a run."""

    show_count: Callable[[str], AbstractContextManager[Callable[[int], None]]]
    show_progress: Callable[[str], AbstractContextManager[Watch]]


async def evaluate_copies(config: Config, stories: int, min_words: int, seed: int, progress: Progress) -> Facts:
    """Copy that many stories of each language, and measure how many of the copies are found.

    Raises Fatal if there is nothing to copy, and what listing and running raise.
    """
    precision = precision_on_record(config.ledger.path)
    with progress.show_count("listing") as show_listed:
        drawn = await sample(config, stories, min_words, seed, show_listed)
    measured = []
    bands: defaultdict[Banding, BandingCounts] = defaultdict(BandingCounts)
    for language, originals in drawn.items():
        jaccard = config.detection.of(language).jaccard
        for n in range(CORPORA):
            with progress.show_progress(f"{language} {n + 1}/{CORPORA}") as watch:
                corpus = await asyncio.to_thread(plant, originals, EDITS[n::CORPORA], seed)
                measured.append(await measure(config, corpus, watch))
                for banding, counts in (await asyncio.to_thread(_count_bands, corpus, jaccard)).items():
                    bands[banding] += counts
    return facts(measured, bands) | {"verdicts": precision}


def _count_bands(corpus: Corpus, jaccard: float) -> dict[Banding, BandingCounts]:
    """The table of banding of some originals and their copies, without the copies that have the same words."""
    distinct = [story for story in corpus.stories if story.edit is None or not story.edit.same_words]
    words = [tokens(story.text) for story in distinct[:BAND_STORIES]]
    return {
        Banding(name, *banding): counts
        for name, shingles in SHINGLES.items()
        for banding, counts in count_by_banding(list(map(shingles, words)), jaccard).items()
    }
