"""Samples the configured source: lists all of it once, and reads some pages of each language."""

import random
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from statistics import fmean

from neardup.app import open_readers
from neardup.columns import Key, Outcomes, StoryColumns
from neardup.config import Config
from neardup.insights.plan.times import MICRO, PageCost
from neardup.pipeline.worker import Jobs, Known, Worker
from neardup.records import Checkpoint, Fingerprinted, Language, Outcome, Story
from neardup.source import rows_of
from neardup.source.listings import open_source

SEED = 1


@dataclass(slots=True)
class Sample:
    """The stories listed by language, the outcomes of those that were read, and the cost of a page."""

    listed: Counter[Language] = field(default_factory=Counter)
    bad_rows: int = 0
    outcomes: dict[Language, list[Outcome]] = field(default_factory=dict)
    cost: PageCost = field(default_factory=PageCost)

    @property
    def unread(self) -> Counter[str]:
        """Count the stories that could not be fingerprinted, by reason."""
        every = (outcome for outcomes in self.outcomes.values() for outcome in outcomes)
        return Counter(str(outcome.reason) for outcome in every if not isinstance(outcome, Fingerprinted))


async def read_sample(config: Config, size: int, show_listed: Callable[[int], None]) -> Sample:
    """Read `size` stories, divided over the languages as evenly as possible; the same listing gives the same stories.

    `show_listed` is called with the number of stories listed so far.
    """
    sample = Sample()
    drawn = await _draw(config, size, sample, show_listed)
    stories = StoryColumns.of(story for of_language in drawn.values() for story in of_language)
    outcomes, sizes = dict[Key, Outcome](), list[int]()

    async def keep(found: Outcomes) -> None:
        outcomes.update(zip(found.keys, found.objects(), strict=True))
        sizes.extend(found.made.pages.headers["size"].tolist())

    async with aclosing(open_readers(config)) as pool:
        worker = Worker(_nothing_on_record, pool.read_all, config.registry)
        if len(stories):
            await pool.start()  # before the measurement, which must not include it
        wall_before, cpu_before, computing_before = time.perf_counter(), pool.cpu_seconds, pool.computing_seconds
        await worker.work(Jobs(stories), keep)
        sample.cost = _cost(
            sizes,
            computing=pool.computing_seconds - computing_before,
            cpu=pool.cpu_seconds - cpu_before,
            wall=time.perf_counter() - wall_before,
        )
    sample.outcomes = {
        language: [outcomes[story.id] for story in of_language] for language, of_language in drawn.items()
    }
    return sample


async def _draw(
    config: Config, size: int, sample: Sample, show_listed: Callable[[int], None]
) -> dict[Language, list[Story]]:
    """Draw `size` stories in all, and count what is listed in `sample`.

    Algorithm R, with a reservoir for each language (Vitter, "Random sampling with a reservoir", 1985).
    """
    rng = random.Random(SEED)  # noqa: S311 - not for cryptography
    reservoirs: dict[Language, list[Story]] = {}
    async for story in rows_of(open_source(config, _ignore_checkpoint)):
        if not isinstance(story, Story):
            sample.bad_rows += 1
            continue
        sample.listed[story.language] += 1
        show_listed(sample.listed.total())
        reservoir = reservoirs.setdefault(story.language, [])
        if len(reservoir) < size:
            reservoir.append(story)
        elif (place := rng.randrange(sample.listed[story.language])) < size:
            reservoir[place] = story
    shares = _shares({language: len(reservoir) for language, reservoir in reservoirs.items()}, size)
    return {language: rng.sample(reservoirs[language], n) for language, n in shares.items()}


def _shares(available: dict[Language, int], size: int) -> dict[Language, int]:
    """Divide `size` over the languages as evenly as possible; what one language lacks goes to the others."""
    shares, left = {}, size
    for done, language in enumerate(sorted(available, key=lambda language: available[language])):
        shares[language] = min(available[language], left // (len(available) - done))
        left -= shares[language]
    return shares


def _cost(sizes: Sequence[int], *, computing: float, cpu: float, wall: float) -> PageCost:
    """The mean cost of pages of these sizes, which took these seconds in total; the default cost if there are none."""
    if not sizes:
        return PageCost()
    per_page = MICRO / len(sizes)  # seconds in total -> microseconds a page
    read = computing * per_page
    return PageCost(fetch=max(0.0, cpu * per_page - read), read=read, wall=wall * per_page, bytes=fmean(sizes))


async def _nothing_on_record(_: Sequence[int]) -> dict[int, Known]:
    """Find no story on record, so that every page is read."""
    return {}


async def _ignore_checkpoint(_: Checkpoint) -> None:
    """Take no note of the checkpoint: the listing is never resumed."""
