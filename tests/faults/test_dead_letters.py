"""Dead letters are listed, counted, retried and dropped."""

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from neardup.ledger import connect, dead_letters, read, runs, stories
from neardup.ledger.dead_letters import DeadLetterFilter
from neardup.pipeline.run import LISTING_BEGAN
from neardup.records import Checkpoint, Dead, DeadLettered, Skip, Skipped, Story

from tests.support.builders import commit, fingerprinted, ledger_in_memory
from tests.support.command import Ended, Neardup, embedded
from tests.support.faults.bed import PATHS, configuration, listed_letters
from tests.support.faults.fault_proxy import Fault, Proxy
from tests.support.languages import HINDI, ODIA
from tests.support.paths import SAMPLES

Make = Callable[..., Neardup]
STORIES = len(PATHS)


@pytest.fixture
def with_dead_letters(proxy: Proxy, served: Neardup) -> tuple[Neardup, Ended]:
    """The command after a backfill that left dead letters and a missing page."""
    faults = {path: [Fault.DENIED] for path in PATHS[:3]} | {PATHS[9]: [Fault.NOT_FOUND]}
    proxy.plan(faults | {PATHS[20]: [Fault.INTERNAL] * 5})
    rows = (SAMPLES / "manifest.csv").read_text(encoding="utf-8") + ",hi,,,,\n"
    manifest = served.folder / "manifest.csv"
    manifest.write_text(rows, encoding="utf-8")
    served.configure(configuration(proxy.endpoint, manifest))
    ended = served("backfill", "--json")
    assert ended.facts["dead_lettered"] == {"bad_id": 1, "forbidden": 3, "store_error": 1}, ended.err
    assert ended.facts["skipped"] == {"missing": 1}
    return served, ended


@pytest.mark.parametrize("known_before", [False, True])
def test_pages_under_one_id_are_said_whatever_the_order(make_neardup: Make, tmp_path: Path, known_before: bool) -> None:
    """The same row twice is one story; another page under its id is a dead letter, in each run that lists it."""
    manifest = tmp_path / "listed.csv"
    under_one_id = [
        f"7,{language},{language}/{page}" for _, _, language, page in (path.split("/") for path in PATHS[:30])
    ]
    neardup = make_neardup(embedded())

    def run(*listed: str) -> Ended:
        manifest.write_text("\n".join(["id,language,path", *listed]), encoding="utf-8")
        return neardup("daily", "--json", NEARDUP_SOURCE__MANIFEST=str(manifest))

    if known_before:
        run(under_one_id[0])
    for _ in range(2):
        ended = run(*under_one_id, under_one_id[0])
        assert ended.facts["listed"] == 31
        assert ended.facts["dead_lettered"] == {"duplicate_id": 29}, ended.err
        assert ended.err.count("listed with two pages") == 29
        letters = listed_letters(neardup)
        assert letters["by_reason"] == {"duplicate_id": 29}
        assert neardup("status", "--json").facts["stories"] == {"HINDI": 1}
    assert run(under_one_id[1]).facts["fingerprinted"] == 1, "a page that has moved is no duplicate"
    assert listed_letters(neardup)["by_reason"] == {"duplicate_id": 28}, "the page that is the story's now"
    assert neardup("forget", "7").code == 0
    assert listed_letters(neardup)["by_reason"] == {}


def test_a_corrected_list_after_an_interrupted_backfill_names_each_story_for_the_first_time(
    neardup: Neardup, tmp_path: Path
) -> None:
    wrong, right = (path.removeprefix("/stories/") for path in PATHS[:2])
    manifest = tmp_path / "listed.csv"
    neardup.configure(embedded())

    def run(command: str, path: str) -> Ended:
        manifest.write_text(f"id,language,path\n7,HINDI,{path}\n")
        return neardup(command, "--json", NEARDUP_SOURCE__MANIFEST=str(manifest))

    assert run("backfill", wrong).facts["fingerprinted"] == 1
    with closing(connect(neardup.ledger)) as db:
        runs.put_checkpoint(db, Checkpoint("the list before it was corrected", 40))
        assert runs.get(db, LISTING_BEGAN) == "0"
    run("daily", wrong)
    with closing(connect(neardup.ledger)) as db:
        assert runs.get(db, LISTING_BEGAN) == "0", "a backfill that is resumed would know no story of its own"
    corrected = run("backfill", right)
    assert (corrected.facts["dead_lettered"], corrected.facts["fingerprinted"]) == ({}, 1), corrected.err


def test_the_other_page_under_an_id_is_taken_on_request(neardup: Neardup, tmp_path: Path) -> None:
    manifest = tmp_path / "listed.csv"
    first, second = (path.removeprefix("/stories/") for path in PATHS[:2])
    manifest.write_text(
        "".join(["id,language,path,updated_at\n", *(f"7,HINDI,{path},2026-01-01\n" for path in (first, second))])
    )
    neardup.configure(embedded())
    assert neardup("daily", "--json", NEARDUP_SOURCE__MANIFEST=str(manifest)).facts["dead_lettered"] == {
        "duplicate_id": 1
    }
    [letter] = listed_letters(neardup)["dead_letters"]
    done = neardup("retry", str(letter["key"]), "--json")
    assert (done.facts["listed"], done.facts["fingerprinted"]) == (1, 1), done.err
    assert listed_letters(neardup)["by_reason"] == {}
    with closing(read(neardup.ledger)) as db:
        assert stories.read_stored_versions(db, [7])[7].path == second


def test_dead_letters_are_listed_retried_and_dropped(with_dead_letters: tuple[Neardup, Ended]) -> None:
    neardup, _ = with_dead_letters
    listed = listed_letters(neardup)
    assert listed["by_reason"] == {"bad_id": 1, "forbidden": 3, "missing": 1, "store_error": 1}
    assert neardup("status", "--json").facts["dead_letters"] == listed["by_reason"]
    keys = [letter["key"] for letter in listed["dead_letters"]]
    row = next(str(key) for key in keys if str(key).startswith("row:"))
    refused = listed_letters(neardup, "--reason", "forbidden")
    assert refused["by_reason"] == {"forbidden": 3} and len(refused["dead_letters"]) == 3
    letter = refused["dead_letters"][0]
    assert (
        letter["attempts"] == 1
        and str(letter["first_at"]).endswith("Z")
        and letter["story"]["id"] == int(str(letter["key"]))
    )
    shown = neardup("dead-letters").out
    assert "6  (bad_id 1, forbidden 3, missing 1, store_error 1)" in shown and "AccessDenied" in shown

    for arguments, word in (
        (["retry", "99"], "no dead letter 99"),
        (["retry", row], "names no story"),
        (["dead-letters", "--drop"], "--drop needs KEYs or --reason"),
        (["retry", "--reason", "boredom"], "boredom"),
    ):
        ended = neardup(*arguments)
        assert ended.code == 2 and word in ended.err, (arguments, ended.err)

    assert neardup("retry", str(letter["key"]), "--json").facts["fingerprinted"] == 1
    assert listed_letters(neardup)["by_reason"]["forbidden"] == 2
    retried = neardup("retry", "--json").facts
    assert (retried["listed"], retried["fingerprinted"], retried["dead_lettered"]) == (4, 4, {})
    assert listed_letters(neardup)["by_reason"] == {"bad_id": 1}, "a row without a story was retried"
    assert neardup("dead-letters", "--drop", "--reason", "bad_id").out == "1 dead letter was deleted\n"
    assert neardup("dead-letters").out == "No dead letters.\n"


def test_a_repeated_failure_is_counted_and_stays(with_dead_letters: tuple[Neardup, Ended], proxy: Proxy) -> None:
    neardup, _ = with_dead_letters
    proxy.plan({PATHS[0]: [Fault.DENIED]})
    assert neardup("retry", "--reason", "forbidden", "--json").facts["dead_lettered"] == {"forbidden": 1}
    [letter] = listed_letters(neardup, "--reason", "forbidden")["dead_letters"]
    assert letter["attempts"] == 2


def test_several_pages_of_dead_letters_are_all_retried() -> None:
    db = ledger_in_memory()
    ids = range(3 * dead_letters.PAGE)
    commit(db, *(DeadLettered(Story(n, ODIA, title="ଶୀର୍ଷକ"), Dead.STORE_ERROR, "why") for n in ids))
    found: list[tuple[str, Story]] = []
    while page := dead_letters.list_retriable(db, DeadLetterFilter(), found[-1][0] if found else ""):
        found += page
    assert sorted(story.id for _, story in found) == list(ids)
    assert found[0][1].title == "ଶୀର୍ଷକ" and found[0][1].language == ODIA


def test_a_story_with_an_outcome_is_no_longer_interrupted() -> None:
    db = ledger_in_memory()
    dead_letters.add_interrupted(db, [1, 2, 3, 4])
    dead_letters.add_interrupted(db, [2, 3])
    assert dead_letters.count_interruptions(db) == {1: 1, 2: 2, 3: 2, 4: 1}
    commit(
        db,
        fingerprinted(1, 1),
        Skipped(Story(2, HINDI), Skip.EMPTY),
        DeadLettered(Story(3, HINDI), Dead.QUARANTINED, "why"),
    )
    assert dead_letters.count_interruptions(db) == {4: 1}
