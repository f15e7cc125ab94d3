"""Measures recall: copies the user's own stories by every edit, and runs the real pipeline on the copies."""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory

from neardup.config import Config
from neardup.core.text.normalize import tokens
from neardup.insights.evaluate.bands import SHINGLES, BandingCounts, count_by_banding
from neardup.insights.evaluate.facts import Banding, facts
from neardup.insights.evaluate.figures import Facts
from neardup.insights.evaluate.measure import measure
from neardup.insights.evaluate.plant import COPIES, Copy, Corpus, plant, write_pages
from neardup.insights.evaluate.sample import Original, sample
from neardup.insights.evaluate.verdict_tables import precision_on_record
from neardup.pipeline.progress import Watch

# In one corpus, most of the work would be to verify copies of a story against each other.  Therefore the ways of
# copying are distributed over several corpora, each with all the originals.
CORPORA = 4
# To start a run takes seconds.  Therefore one run has the originals of as many languages as make this many, and a
# sample of few originals is one corpus.
ORIGINALS, FEW = 300, 5
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
    for group in _groups(list(drawn.values())):
        languages = ", ".join(originals[0].language for originals in group)
        corpora_each = CORPORA if sum(map(len, group)) > FEW else 1
        for n in range(corpora_each):
            copies = COPIES[n::corpora_each]
            with (
                progress.show_progress(f"{languages} {n + 1}/{corpora_each}") as watch,
                TemporaryDirectory(prefix="neardup-evaluate-") as name,
            ):
                corpora, counts = await asyncio.to_thread(_plant, config, group, copies, seed, Path(name))
                measured += await measure(config, corpora, Path(name), watch)
            for banding, more in counts:
                bands[banding] += more
    return facts(measured, bands) | {"verdicts": precision}


def _groups(samples: Sequence[Sequence[Original]]) -> Iterator[list[Sequence[Original]]]:
    """Divide the samples of the languages into groups of at least ORIGINALS stories, except the last."""
    group: list[Sequence[Original]] = []
    for originals in samples:
        group.append(originals)
        if sum(map(len, group)) >= ORIGINALS:
            yield group
            group = []
    if group:
        yield group


def _plant(
    config: Config, group: Iterable[Sequence[Original]], copies: Sequence[Copy], seed: int, folder: Path
) -> tuple[list[Corpus], list[tuple[Banding, BandingCounts]]]:
    """Write a corpus of each language into `folder`; returns the corpora and their bandings."""
    corpora: list[Corpus] = []
    counts: list[tuple[Banding, BandingCounts]] = []
    for originals in group:
        corpus, texts = plant(originals, copies, seed, first=corpora[-1].ids.stop if corpora else 0)
        write_pages(corpus, texts, folder)
        counts += _count_bands(corpus, texts, config.detection.of(originals[0].language).jaccard).items()
        corpora.append(corpus)
    return corpora, counts


def _count_bands(corpus: Corpus, texts: Iterable[str], jaccard: float) -> dict[Banding, BandingCounts]:
    """The table of banding of some originals and their copies, without the copies that have the same words."""
    distinct = (
        text
        for story, text in zip(corpus.stories, texts, strict=True)
        if story.copy is None or not (story.copy.same_words or story.copy.part)
    )
    words = [tokens(text) for text in islice(distinct, BAND_STORIES)]
    return {
        Banding(name, *banding): counts
        for name, shingles in SHINGLES.items()
        for banding, counts in count_by_banding(list(map(shingles, words)), jaccard).items()
    }
