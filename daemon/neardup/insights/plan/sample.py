"""A sample of the configured source: all of it is listed once, some pages of each language are read."""

import asyncio
import random
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from itertools import islice
from statistics import fmean

from neardup.app import open_readers, open_source
from neardup.config import Config
from neardup.core.page import PageFingerprinted
from neardup.insights.plan.times import MICRO, PageCost
from neardup.pages.results import PageResult
from neardup.pipeline.worker import Worker
from neardup.records import Checkpoint, Fingerprinted, Language, Outcome, Story

SEED = 1


@dataclass(slots=True)
class Sample:
    """What was listed by language, what became of the stories that were read, and what a page cost."""

    listed: Counter[Language] = field(default_factory=Counter)
    bad_rows: int = 0
    outcomes: dict[Language, list[Outcome]] = field(default_factory=dict)
    cost: PageCost = field(default_factory=PageCost)

    @property
    def unread(self) -> Counter[str]:
        """Why stories could not be fingerprinted, and how many."""
        every = (one for outcomes in self.outcomes.values() for one in outcomes)
        return Counter(str(one.reason) for one in every if not isinstance(one, Fingerprinted))


async def take(config: Config, size: int, listed: Callable[[int], None]) -> Sample:
    """Read `size` stories, as many of each language as there are or its share; the same for the same listing.

    `listed` is told how many have been listed.
    """
    sample = Sample()
    drawn = await _draw(config, size, sample, listed)
    every = [story for stories in drawn.values() for story in stories]
    sizes: list[int] = []
    async with aclosing(open_readers(config)) as pool:

        async def read(story: Story, _: str | None) -> PageResult:
            result = await pool.read(story, None)
            if isinstance(result, PageFingerprinted):
                sizes.append(result.size)
            return result

        worker = Worker(_unknown, read)
        for story in every[:1]:  # once before the rest, so that no page pays for the start
            await worker.process(story)
        sizes.clear()
        began, spent, computed = time.perf_counter(), pool.cpu_seconds, pool.computing_seconds
        done = await asyncio.gather(*map(worker.process, every))
        wall = time.perf_counter() - began
        sample.cost = _cost(sizes, pool.computing_seconds - computed, pool.cpu_seconds - spent, wall)
    outcomes = iter(outcome for _, outcome in done)
    sample.outcomes = {language: list(islice(outcomes, len(stories))) for language, stories in drawn.items()}
    return sample


async def _draw(
    config: Config, size: int, sample: Sample, listed: Callable[[int], None]
) -> dict[Language, list[Story]]:
    """Algorithm R (Vitter, "Random sampling with a reservoir", ACM TOMS 1985), a reservoir for each language."""
    chance = random.Random(SEED)  # noqa: S311 - no secret
    reservoirs: dict[Language, list[Story]] = {}
    async for story in open_source(config, _unheard).stories(since=None, resume=None):
        if not isinstance(story, Story):
            sample.bad_rows += 1
            continue
        sample.listed[story.language] += 1
        listed(sample.listed.total())
        reservoir = reservoirs.setdefault(story.language, [])
        if len(reservoir) < size:
            reservoir.append(story)
        elif (place := chance.randrange(sample.listed[story.language])) < size:
            reservoir[place] = story
    shares = _shares({language: len(reservoir) for language, reservoir in reservoirs.items()}, size)
    return {language: chance.sample(reservoirs[language], n) for language, n in shares.items()}


def _shares(there: dict[Language, int], size: int) -> dict[Language, int]:
    """So many in all, as evenly as can be; who has fewer leaves the rest to the others."""
    shares, left = {}, size
    for behind, language in enumerate(sorted(there, key=lambda language: there[language])):
        shares[language] = min(there[language], left // (len(there) - behind))
        left -= shares[language]
    return shares


def _cost(sizes: Sequence[int], computing: float, cpu: float, wall: float) -> PageCost:
    """Of a page, where pages of these sizes took so many seconds in all; the typical one where none was read."""
    if not sizes:
        return PageCost()
    each = MICRO / len(sizes)
    read = computing * each
    return PageCost(fetch=max(0.0, cpu * each - read), read=read, wall=wall * each, bytes=fmean(sizes))


async def _unknown(_: int) -> None:
    """No ledger is asked."""


async def _unheard(_: Checkpoint) -> None:
    """No listing is resumed."""
