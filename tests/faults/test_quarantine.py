"""A page that kills its reader is read twice, once more without its markup, and then quarantined.

Stories read beside it are not affected.
"""

import csv
from collections.abc import Callable, Sequence
from pathlib import Path

from neardup.core.languages import SHIPPED
from neardup.core.page import PageFingerprinted
from neardup.pages.results import PageResult, read_singly
from neardup.pipeline.worker import Known, Worker
from neardup.records import Fingerprinted, Story

from tests.support.builders import fingerprint_of
from tests.support.command import Neardup, embedded
from tests.support.faults.bed import PATHS, Bed, listed_letters
from tests.support.faults.fault_table import AssertSameState, Said
from tests.support.faults.hostile_pages import DIES, KILLER, RAISES, use_normal_program
from tests.support.languages import TAMIL
from tests.support.paths import SAMPLES

Make = Callable[..., Neardup]
STORIES = len(PATHS)


def test_a_page_that_kills_is_quarantined_alone(
    poisoned: Callable[[str], Neardup], make_neardup: Make, assert_same_state: AssertSameState
) -> None:
    neardup = poisoned(DIES)
    ended = neardup("backfill", "--json")
    assert ended.facts["fingerprinted"] == STORIES - 1, ended.err
    assert ended.facts["dead_lettered"] == {"quarantined": 1}
    assert ended.err.count("a reader process died") == 3, "the page was not read twice, and once without its markup"
    again = neardup("backfill", "--json")
    assert again.facts["dead_lettered"] == {"quarantined": 1}, "the page left quarantine"
    assert "a reader process died" not in again.err
    assert neardup("retry", "--json").facts["listed"] == 0, "a retry read a quarantined page that it did not name"
    named = neardup("retry", str(KILLER), "--json")
    assert named.facts["dead_lettered"] == {"quarantined": 1}
    assert named.err.count("a reader process died") == 3, "the named page was not tried as often"
    use_normal_program(neardup)
    assert neardup("retry", "--reason", "quarantined", "--json").facts["fingerprinted"] == 1
    assert listed_letters(neardup) == {"by_reason": {}, "dead_letters": []}
    whole = make_neardup(embedded(), "whole")
    assert whole("backfill").code == 0
    said = Said("a reader process died", (ended.err + named.err).count("a reader process died"))
    states = Bed(neardup.folder).state(), Bed(whole.folder).state()
    assert_same_state("a page that kills its reader process", 6, 6, *states, said=said)


def test_an_edited_story_leaves_quarantine(poisoned: Callable[[str], Neardup], tmp_path: Path) -> None:
    neardup = poisoned(DIES)
    assert neardup("backfill", "--json").facts["dead_lettered"] == {"quarantined": 1}
    with (SAMPLES / "manifest.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    edited = tmp_path / "edited.csv"
    with edited.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        later = "2026-01-01T00:00:00Z"
        writer.writerows(row | {"updated_at": later} for row in rows if row["id"] == str(KILLER))
    page = tmp_path / "pages" / "TAMIL" / f"{KILLER}.html"
    page.write_bytes(page.read_bytes().replace(b"POISON", b"cured"))
    ended = neardup("daily", "--json", NEARDUP_SOURCE__MANIFEST=str(edited))
    assert ended.facts["fingerprinted"] == 1, ended.err
    assert listed_letters(neardup)["by_reason"] == {}


def test_a_story_whose_processing_raises_is_tried_twice(poisoned: Callable[[str], Neardup]) -> None:
    neardup = poisoned(RAISES)
    ended = neardup("backfill", "--json")
    assert (ended.facts["fingerprinted"], ended.facts["dead_lettered"]) == (STORIES - 1, {"crashed": 1})
    assert ended.err.count("RecursionError: too deep") >= 2
    [letter] = listed_letters(neardup)["dead_letters"]
    assert (letter["key"], letter["error"]) == (str(KILLER), "RecursionError: too deep")
    use_normal_program(neardup)
    assert neardup("retry", "--json").facts["fingerprinted"] == 1


async def test_a_story_whose_processing_raised_once_is_fingerprinted() -> None:
    answers: list[PageResult | Exception] = [
        RecursionError("too deep"),
        PageFingerprinted(fingerprint_of(bytes(16)), None, 0),
    ]

    async def known(_: Sequence[int]) -> dict[int, Known]:
        return {}

    async def read(*_: object) -> PageResult:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    outcome = await Worker(known, read_singly(read), SHIPPED).outcome(Story(1, TAMIL))
    assert isinstance(outcome, Fingerprinted) and not answers
