"""Canaries: copies of stories on record, made with known edits and looked up in the live index after each daily run.

Nothing of a copy is stored.  A copy is found if a check of its text matches the story that it was made of.
"""

import asyncio
from collections.abc import Sequence
from contextlib import aclosing

from neardup.app import App, make_checker, open_readers
from neardup.core.page import prepare
from neardup.core.verify.text import Text
from neardup.insights.evaluate.corpus import COPIES, Corpus, Original, PlantedStory, plant
from neardup.insights.evaluate.edits import OTHER_SCRIPT, name_chapters, name_replaced
from neardup.ledger import now_ms, self_checks
from neardup.ledger.self_checks import Measure, Trial
from neardup.pages.reader_pool import ReaderPool
from neardup.pages.text_cache import Texts
from neardup.pipeline.progress import Progress, Watch
from neardup.pipeline.run_lifecycle import Hook
from neardup.pipeline.summary import Summary
from neardup.query.check import Checker, Submission
from neardup.records import Story
from neardup.telemetry.log import log

EDITS = (name_replaced(0.05), "50% foreign text appended", name_chapters(3), "joiners inserted", OTHER_SCRIPT)
CANARIES = [copy for copy in COPIES if copy.name in EDITS]
WORDS = range(200, 5_000)  # of a story that is copied: shorter ones are missed by chance, longer ones cost much
CHECKS_AT_ONCE = 4


def make_hook(app: App, watch: Watch) -> Hook:
    """A hook that measures after a run that ended; `run.canaries` is the number of stories of each language.

    `watch` is called when it begins: it may take a minute.
    """

    async def measure(summary: Summary) -> None:
        if summary.status == "done":
            watch(Progress(phase="looking up canaries"))
            await record_recalls(app)

    return Hook("canaries", measure)


async def record_recalls(app: App) -> None:
    """Measure, and record the recall by language and edit.  Raises what checks raise."""
    trials = await look_up_canaries(app)
    log.info("canaries", looked_up=len(trials), found=sum(trial.found for trial in trials))
    await app.ledger.do(self_checks.record_recalls, Measure.CANARY, now_ms(), self_checks.sum_recalls(trials))


async def look_up_canaries(app: App) -> list[Trial]:
    """Copy stories of each language, check the copies, and say of each whether its story was found."""
    originals_drawn = await app.reader.do(self_checks.draw_stories, app.config.run.canaries, WORDS)
    log.info("looking up canaries", stories=sum(map(len, originals_drawn.values())))
    trials: list[Trial] = []
    async with aclosing(open_readers(app.config)) as pool:
        texts = Texts(pool.read_to_compare)
        checker = make_checker(app, texts)
        for stories in originals_drawn.values():
            originals = await _read_originals(pool, stories)
            if len(originals) > 1:  # an edit takes words from another story
                trials += await _check_copies(checker, originals)
    return trials


async def _read_originals(pool: ReaderPool, stories: Sequence[Story]) -> list[Original]:
    """The stories whose pages can be read."""
    texts = await asyncio.gather(*map(pool.read_text, stories))
    return [
        Original(story.id, story.language, text.written)
        for story, text in zip(stories, texts, strict=True)
        if isinstance(text, Text)
    ]


async def _check_copies(checker: Checker, originals: Sequence[Original]) -> list[Trial]:
    corpus, texts = await asyncio.to_thread(plant, originals, CANARIES, now_ms())
    slots = asyncio.Semaphore(CHECKS_AT_ONCE)

    async def check(story: PlantedStory, text: str) -> list[Trial]:
        async with slots:
            return await _check_copy(checker, corpus, story, text)

    checks = (check(story, text) for story, text in zip(corpus.stories, texts, strict=True) if story.copy)
    return [trial for trials in await asyncio.gather(*checks) for trial in trials]


async def _check_copy(checker: Checker, corpus: Corpus, story: PlantedStory, text: str) -> list[Trial]:
    """Check one copy, which counts for each story whose text it has; not at all if index or texts did not answer."""
    assert story.copy is not None
    prepared = await asyncio.to_thread(prepare, Text(text))
    assert isinstance(prepared, Text), "a copy of a story has words"
    language = corpus.originals[0].language
    result = await checker.check(Submission(language, prepared))
    if result.estimated:
        log.warning("a canary does not count", why=result.reasons)
        return []
    matches = {match.story_id for match in result.matches}
    ids = [corpus.originals[origin].id for origin in story.origins]
    return [Trial(language, story_id, story.copy.name, story_id in matches) for story_id in ids]
