"""How many copies are found: stories of the user's own corpus, copied by every edit, through the real pipeline."""

import asyncio
from collections import defaultdict
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass

from neardup.config import Config
from neardup.core.text.normalize import tokens
from neardup.insights.evaluate.bands import SHINGLES, Tally, tallies
from neardup.insights.evaluate.edits import EDITS
from neardup.insights.evaluate.facts import Banding, facts
from neardup.insights.evaluate.figures import Facts
from neardup.insights.evaluate.measure import measure
from neardup.insights.evaluate.plant import Corpus, plant
from neardup.insights.evaluate.sample import sample
from neardup.insights.evaluate.verdict_tables import of_ledger
from neardup.pipeline.progress import Watch

# All copies together would mostly be verified against one another: so the edits are dealt out to
# some corpora, each with all the originals.
CORPORA = 4
BAND_STORIES = 400  # of a corpus; every pair of them is compared


@dataclass(frozen=True, slots=True)
class Progress:
    """Whom to tell: of stories listed, and of a run's progress."""

    counting: Callable[[str], AbstractContextManager[Callable[[int], None]]]
    watching: Callable[[str], AbstractContextManager[Watch]]


async def evaluate_copies(config: Config, stories: int, min_words: int, seed: int, progress: Progress) -> Facts:
    """Copy that many stories of each language and see what is found of them.

    Raises Fatal where there is nothing to copy, and what listing and running raise.
    """
    judged = of_ledger(config.ledger.path)
    with progress.counting("listing") as listed:
        drawn = await sample(config, stories, min_words, seed, listed)
    measured = []
    bands: defaultdict[Banding, Tally] = defaultdict(Tally)
    for language, originals in drawn.items():
        jaccard = config.detection.of(language).jaccard
        for n in range(CORPORA):
            with progress.watching(f"{language} {n + 1}/{CORPORA}") as watch:
                corpus = await asyncio.to_thread(plant, originals, EDITS[n::CORPORA], seed)
                measured.append(await measure(config, corpus, watch))
                for banding, tally in (await asyncio.to_thread(_bands, corpus, jaccard)).items():
                    bands[banding] += tally
    return facts(measured, bands) | {"verdicts": judged}


def _bands(corpus: Corpus, jaccard: float) -> dict[Banding, Tally]:
    """The band table of some originals with their copies, but for those whose words are the same."""
    told = [story for story in corpus.stories if story.edit is None or not story.edit.same_words]
    words = [tokens(story.text) for story in told[:BAND_STORIES]]
    return {
        Banding(name, *banding): tally
        for name, shingles in SHINGLES.items()
        for banding, tally in tallies(list(map(shingles, words)), jaccard).items()
    }
