"""Laws of the canaries: copies of stories on record are found, others are not, and nothing of a copy is stored."""

import asyncio
from collections import Counter
from pathlib import Path
from random import Random

import pytest
from neardup.app import open_app, run_once
from neardup.config import load
from neardup.core.text.normalize import tokenize
from neardup.insights.corpus import Original
from neardup.insights.edits import OTHER_SCRIPT
from neardup.insights.self_checks import EDITS, _check_copies, make_hook
from neardup.ledger import self_checks
from neardup.ledger.self_checks import ALL, Measure
from neardup.pipeline.summary import Progress
from neardup.records import Language
from neardup.telemetry.metrics import CANARY_INTERVAL, CANARY_RECALL

from tests.support.checked_ledger import CheckedLedger
from tests.support.command import embedded
from tests.support.faults.bed import impatient
from tests.support.languages import ENGLISH, SAMPLED, TAMIL, TEXTS

STORIES = 6
NOT_IN_ENGLISH = {"joiners inserted", OTHER_SCRIPT}
STORED = ("stories", "candidates", "flags", "passage_hashes", "changes", "common_passages")


def text_of(language: Language, seed: int) -> str:
    """250 words of a language, each made of two, in the letters of its script alone."""
    words, rng = [word.decode() for word in tokenize(TEXTS[language])], Random(seed)
    return " ".join("".join(rng.sample(words, 2)) for _ in range(250))


async def row_counts(platform: CheckedLedger) -> list[int]:
    counted = [f"SELECT count(*) FROM {table}" for table in STORED]
    return await platform.ledger.do(lambda db: [db.execute(query).fetchone()[0] for query in counted])


@pytest.mark.parametrize("language", [TAMIL, ENGLISH])
async def test_copies_of_stories_on_record_are_found_and_not_stored(
    platform: CheckedLedger, language: Language
) -> None:
    originals = [Original(n, language, text_of(language, n)) for n in range(1, STORIES + 2)]
    for original in originals[:STORIES]:
        await platform.add(language, original.id, original.text.split())
    await platform.index_all()
    before = await row_counts(platform)
    tried = await _check_copies(platform.checker, originals)
    found = Counter((canary.subject, canary.found) for canary in tried if canary.story_id <= STORIES)
    names = {name for name in EDITS if language is not ENGLISH or name not in NOT_IN_ENGLISH}
    assert {name for name, _ in found} == names
    assert not [canary for canary in tried if not canary.found and canary.story_id <= STORIES], "a copy was missed"
    assert not [canary for canary in tried if canary.found and canary.story_id > STORIES], (
        "a story not on record was found"
    )
    assert await row_counts(platform) == before, "a copy was stored"


def test_a_daily_run_measures_and_shows_its_recall(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("neardup.insights.self_checks.WORDS", range(60, 5_000))
    monkeypatch.chdir(tmp_path)
    config = tmp_path / "config.toml"
    config.write_text(f"{embedded()}\n[run]\ncanaries = 3\n", encoding="utf-8")

    begun = list[Progress]()

    async def run() -> tuple[dict[str, str], dict[tuple[str, str], float]]:
        async with open_app(load(config)) as app:
            await run_once(app, "backfill", asyncio.Event())
            assert await app.ledger.do(self_checks.read_latest_recalls, Measure.CANARY) is None
            daily = await run_once(app, "daily", asyncio.Event(), hooks=[make_hook(app, begun.append)])
            measured = await app.ledger.do(self_checks.read_latest_recalls, Measure.CANARY)
            assert measured is not None
            return daily.warnings, {
                (canary.recall.language, canary.recall.subject): canary.recall.share for canary in measured[1]
            }

    with impatient():
        warnings, shares = asyncio.run(run())
    assert warnings == {}
    assert [progress.phase for progress in begun] == ["looking up canaries"], "a minute passes without a line"
    assert {language for language, _ in shares} == {*SAMPLED, ALL}
    assert {subject for _, subject in shares} == {*EDITS, ALL}
    assert shares[ALL, EDITS[0]] == 1
    assert CANARY_RECALL.labels(ALL, ALL)._value.get() == shares[ALL, ALL]
    assert CANARY_INTERVAL.labels(ALL, ALL, "month_high")._value.get() == 1
