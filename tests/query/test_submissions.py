"""Laws of submitted stories: stored as a listing would store them, compared with each other, forgotten for good."""

import asyncio
import time
from itertools import combinations
from pathlib import Path
from random import Random
from string import ascii_lowercase
from types import SimpleNamespace

import pytest
from neardup.config import Detection, Thresholds
from neardup.core.columns import Outcomes
from neardup.core.languages import LANGUAGES
from neardup.core.verify.tiers import EXACT, PASSAGE, SIMILAR
from neardup.errors import Fatal, Forgotten, Misuse, TooLarge
from neardup.ledger import candidates, files, lock, marks, outbox, stories, story_rows, submissions
from neardup.pipeline import upkeep
from neardup.pipeline.upkeep import Upkeep
from neardup.query.check import Examined, Submission
from neardup.records import Fingerprinted, Language, MarkReason, Skip, Skipped, Story
from structlog.testing import capture_logs

from tests.support.builders import fingerprint_of
from tests.support.checked_ledger import MAX_BYTES, CheckedLedger, checked_ledger, text_of, words_of
from tests.support.languages import BENGALI, ENGLISH, HINDI, MALAYALAM, MARATHI, PUNJABI, TAMIL


def pages(platform: CheckedLedger) -> list[str]:
    folder = files.name_submitted_folder(platform.ledger.path)
    return sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []


async def path_of(platform: CheckedLedger, story_id: int) -> str | None:
    row = (await platform.ledger.do(story_rows.describe, [story_id]))[story_id]
    path: str | None = row["path"]
    return path


@pytest.mark.parametrize("language", LANGUAGES)
async def test_stories_submitted_one_after_the_other_see_each_other(
    platform: CheckedLedger, language: Language
) -> None:
    original = words_of(language, "a")
    assert (await platform.put(language, 9, original)).verdict == "clear"
    similar = await platform.put(language, 5, original[:150] + words_of(language, "b", 50))
    passage = await platform.put(language, 3, original[:90] + words_of(language, "c", 150))
    await platform.put(language, 7, words_of(language, "unrelated"))
    assert [(match.story_id, match.kind) for match in similar.matches] == [(9, SIMILAR)]
    assert {match.story_id: match.kind for match in passage.matches} == {9: PASSAGE, 5: PASSAGE}
    assert await platform.flagged() == {(5, 9): SIMILAR, (3, 9): PASSAGE, (3, 5): PASSAGE}
    assert await platform.ledger.do(candidates.count_pending) == 0


@pytest.mark.parametrize("order", [(1, 2), (2, 1)])
async def test_a_pair_of_two_languages_is_held_to_the_thresholds_of_the_lower_id(
    tmp_path: Path, order: tuple[int, int]
) -> None:
    """The thresholds of Marathi are never reached; the story with the lower id is in Hindi."""
    copied, unreached = words_of(HINDI, "a", 200), Thresholds(containment=0.99, jaccard=0.99, passage_words=9999)
    texts = {1: (HINDI, copied + words_of(HINDI, "b", 90)), 2: (MARATHI, copied + words_of(HINDI, "c", 90))}
    async with checked_ledger(tmp_path, Detection(languages={MARATHI: unreached})) as platform:
        for story_id in order:
            await platform.put(texts[story_id][0], story_id, texts[story_id][1])
        assert (await platform.flagged()).keys() == {(1, 2)}


async def test_the_flag_has_the_spans_and_the_scores_of_the_answer(platform: CheckedLedger) -> None:
    original = words_of(MALAYALAM, "a")
    await platform.put(MALAYALAM, 9, original)
    [match] = (await platform.put(MALAYALAM, 5, words_of(MALAYALAM, "b", 50) + original[:150])).matches
    again = await platform.checker.check(
        Submission(MALAYALAM, text_of(words_of(MALAYALAM, "b", 50) + original[:150]), story_id=5)
    )
    assert again.matches == [match]
    query = "SELECT containment_a, containment_b, jaccard FROM flags"
    rows = await platform.ledger.do(lambda db: db.execute(query).fetchall())
    assert rows == [(match.containment, match.matched_containment, match.jaccard)]
    assert match.spans == ((50, 200, 0, 150),)


async def test_a_second_call_changes_nothing(platform: CheckedLedger) -> None:
    original = words_of(TAMIL, "a")
    await platform.put(TAMIL, 1, original, author="x")
    first = await platform.put(TAMIL, 2, original[:180], author="x")
    assert first.verdict == "review", "its author wrote both"
    last, kept = await platform.ledger.do(outbox.read_last_seq), pages(platform)
    assert await platform.put(TAMIL, 2, original[:180]) == first
    assert await platform.ledger.do(outbox.read_last_seq) == last, "the story was written again"
    assert pages(platform) == kept
    row = (await platform.ledger.do(story_rows.describe, [2]))[2]
    assert (row["author_id"], row["title"]) == ("x", "title 2"), "what a call leaves out stays as it is"


async def test_a_changed_text_replaces_page_and_flags(platform: CheckedLedger) -> None:
    original = words_of(TAMIL, "a")
    await platform.put(TAMIL, 1, original)
    await platform.put(TAMIL, 2, original[:180])
    before = await path_of(platform, 2)
    assert (await platform.put(TAMIL, 2, words_of(TAMIL, "new"))).verdict == "clear"
    assert await platform.flagged() == {}
    assert before is not None and before.rpartition("/")[2] not in pages(platform)
    assert len(pages(platform)) == 2


async def test_a_submitted_story_is_marked_as_one_of_a_listing(platform: CheckedLedger) -> None:
    await platform.put(HINDI, 1, words_of(TAMIL, "a"))
    found = await platform.ledger.do(marks.read_marks, [1])
    assert [mark.reason for mark in found[1]] == [MarkReason.MISLABELLED]
    await platform.put(HINDI, 1, words_of(HINDI, "b"))
    assert await platform.ledger.do(marks.read_marks, [1]) == {}, "the mark is of the text before"


async def test_stories_submitted_at_once_flag_each_pair_once(tmp_path: Path, platform: CheckedLedger) -> None:
    original = words_of(BENGALI, "a")
    async with checked_ledger(tmp_path) as other:  # as another process
        await asyncio.gather(
            *(
                maker.put(BENGALI, n, [*original[:-n], *words_of(BENGALI, f"b{n}", n)])
                for n in range(1, 7)
                for maker in [(platform, other)[n % 2]]
            )
        )
    assert set(await platform.flagged()) == set(combinations(range(1, 7), 2))


async def test_a_listing_takes_over_a_submitted_story(platform: CheckedLedger) -> None:
    original = words_of(MARATHI, "a")
    await platform.put(MARATHI, 1, original)
    listed = Skipped(Story(1, MARATHI, "MARATHI/1.html", title="listed", updated_at=5), Skip.UNCHANGED)
    last, kept = await platform.ledger.do(outbox.read_last_seq), pages(platform)
    await platform.ledger.do(stories.commit, stories.Batch(Outcomes.of([listed]), [], 1, {}, None))
    assert await path_of(platform, 1) == "MARATHI/1.html"
    await platform.put(MARATHI, 1, original)
    assert await path_of(platform, 1) == "MARATHI/1.html", "the page that was listed is the page of the story"
    assert await platform.ledger.do(outbox.read_last_seq) == last
    assert pages(platform) == kept, "a page that no story needs was kept"


async def test_a_page_that_is_below_content_url_already_is_not_kept(platform: CheckedLedger) -> None:
    submission = Submission(ENGLISH, text_of(words_of(ENGLISH, "a")), 1)
    await platform.submissions.put(submission, b"", "pages/1.html")
    assert (await path_of(platform, 1), pages(platform)) == ("pages/1.html", [])


async def test_a_plain_text_is_kept_as_it_is(platform: CheckedLedger) -> None:
    text = text_of(["<p>x", *words_of(PUNJABI, "a"), "a<b"])
    await platform.submissions.put(Submission(PUNJABI, text, 1), None)
    path = await path_of(platform, 1)
    assert path is not None and path.endswith(".txt"), "as a page it would read as another text"
    result = await platform.put(PUNJABI, 2, words_of(PUNJABI, "a")[:150])
    assert [(match.story_id, match.estimated) for match in result.matches] == [(1, False)]


async def test_a_forgotten_story_comes_back_only_on_request(platform: CheckedLedger) -> None:
    original = words_of(HINDI, "a")
    await platform.put(HINDI, 1, original)
    await platform.put(HINDI, 2, original)
    assert await platform.submissions.forget(2)
    assert not await platform.submissions.forget(2)
    assert (await platform.flagged(), len(pages(platform))) == ({}, 1)
    listed = Fingerprinted(Story(2, HINDI), fingerprint_of(bytes(16)), None)
    await platform.ledger.do(stories.commit, stories.Batch(Outcomes.of([listed]), [], 1, {}, None))
    assert await platform.ledger.do(stories.read_stored_versions, [2]) == {}, "a batch on its way brought it back"
    with pytest.raises(Forgotten, match="story 2 was forgotten on request"):
        await platform.put(HINDI, 2, original)
    assert (await platform.put(HINDI, 2, original, restore=True)).verdict == "copy"
    assert await platform.flagged() == {(1, 2): EXACT}
    assert await platform.ledger.do(stories.count_forgotten) == 0


@pytest.mark.parametrize(
    ("story_id", "path", "why"),
    [
        (None, None, "needs an id"),
        (-5, None, "not an integer from 0"),
        (2**63, None, "not an integer from 0"),
        (1, "../1.html", "not a path below the URL of the pages"),
        (1, "submitted://1.html", "not a path below the URL of the pages"),
    ],
)
async def test_a_story_that_no_listing_could_name_is_refused(
    platform: CheckedLedger, story_id: int | None, path: str | None, why: str
) -> None:
    with pytest.raises(Misuse, match=why):
        await platform.submissions.put(Submission(HINDI, text_of(words_of(HINDI, "a")), story_id), b"", path)
    assert pages(platform) == []


async def test_a_text_that_is_too_large_to_be_read_again_is_refused(platform: CheckedLedger) -> None:
    text = text_of(words_of(HINDI, "a", MAX_BYTES // 10))
    with pytest.raises(TooLarge):
        await platform.submissions.put(Submission(HINDI, text, 1), None)
    assert pages(platform) == []


async def test_a_story_that_a_run_wrote_meanwhile_is_found_by_the_second_lookup(platform: CheckedLedger) -> None:
    original = words_of(HINDI, "a")
    await platform.put(HINDI, 1, original)
    await platform.add(HINDI, 2, original[:190])  # by a run that looked it up before
    assert await platform.flagged() == {}
    with lock.only_one(platform.ledger.path, "daily"):
        assert not await platform.upkeep.do_due_work(), "the run does it"
    assert await platform.upkeep.do_due_work()
    assert await platform.flagged() == {(1, 2): SIMILAR}
    assert (await platform.index.read_position()).applied == await platform.ledger.do(outbox.read_last_seq)
    assert await platform.ledger.do(submissions.count_unsettled) == 0
    assert not await platform.upkeep.do_due_work(), "there is nothing left to do"


async def test_upkeep_waits_for_the_ledger_without_blocking_the_event_loop(
    platform: CheckedLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits, loop = asyncio.Event(), asyncio.get_running_loop()
    await platform.put(HINDI, 1, words_of(HINDI, "a"))
    pause = SimpleNamespace(monotonic=time.monotonic, sleep=lambda _: loop.call_soon_threadsafe(waits.set))
    monkeypatch.setattr(lock, "time", pause)
    monkeypatch.setattr(lock, "read_holder", lambda _: None)  # the other service takes the lock a moment later
    with lock.only_one(platform.ledger.path, lock.SERVE):
        keeping_up = asyncio.create_task(platform.upkeep.do_due_work())
        await waits.wait()
    assert await keeping_up, "the event loop stood still until the attempt to take the lock was given up"


async def test_no_lookup_is_left_however_many_are_to_be_made(
    platform: CheckedLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upkeep, "STORIES_PER_LOOKUP", 2)
    for story_id in range(5):
        await platform.put(HINDI, story_id, words_of(HINDI, f"{story_id}"))
    await platform.index_all()
    held = platform.upkeep
    await held.passages.keep_up()
    await upkeep.settle_all(held.index, held.passages, platform.ledger, held.detection)
    assert await platform.ledger.do(submissions.count_unsettled) == 0


async def test_a_copy_behind_a_passage_that_has_become_common_is_found(tmp_path: Path) -> None:
    rng = Random(1)
    prayer, copied, *own = (
        ["".join(rng.choices(ascii_lowercase, k=7)) for _ in range(n)] for n in (120, 90, *[300] * 5)
    )
    async with checked_ledger(tmp_path, Detection(max_matches=1, common_passage=3)) as platform:
        for n, shared in enumerate((copied, prayer, prayer + copied, prayer, prayer)):
            assert (0, 2) not in await platform.flagged(), "there was room for one match, which was the prayer"
            await platform.put(ENGLISH, n, own[n] + shared)
            await platform.upkeep.do_due_work()
        assert await platform.flagged() == {(0, 2): PASSAGE}


async def test_upkeep_goes_on_after_any_error(platform: CheckedLedger, monkeypatch: pytest.MonkeyPatch) -> None:
    """The message of an unknown error is not logged: it may quote a story."""
    errors = iter((OSError(28, "No space left on device"), KeyError("a story"), KeyError("a story"), Fatal("damaged")))
    over = asyncio.Event()

    async def fail(_: Upkeep) -> bool:
        if (error := next(errors, None)) is not None:
            raise error
        over.set()
        return True

    monkeypatch.setattr(Upkeep, "do_due_work", fail)
    monkeypatch.setattr("neardup.pipeline.upkeep.EVERY_SECONDS", 0)
    with capture_logs() as logged:
        running = asyncio.create_task(platform.upkeep.run())
        await over.wait()
        running.cancel()
    assert [entry["why"] for entry in logged] == ["[Errno 28] No space left on device", "KeyError", "damaged"]


async def test_what_the_store_did_not_answer_is_verified_later(platform: CheckedLedger) -> None:
    original = words_of(HINDI, "a")
    await platform.add(HINDI, 1, original)
    platform.is_available = False
    result = await platform.put(HINDI, 2, original[:190])
    assert result.estimated and [match.estimated for match in result.matches] == [True]
    assert await platform.flagged() == {}, "an estimate is no flag"
    platform.is_available = True
    await platform.upkeep.do_due_work()
    assert await platform.flagged() == {(1, 2): SIMILAR}


async def test_a_deadline_is_that_of_both_checks(platform: CheckedLedger, monkeypatch: pytest.MonkeyPatch) -> None:
    original, examine, examined = words_of(HINDI, "a"), platform.checker.examine, list[int | None]()
    await platform.add(HINDI, 1, original)
    platform.is_available = False

    async def examine_until_late(submission: Submission, *, deadline: float | None) -> Examined:
        found = await examine(submission, deadline=deadline)
        examined.append(submission.story_id)
        await platform.add(HINDI, 3, original[:195])
        monkeypatch.setattr(asyncio.get_running_loop(), "time", lambda: time.monotonic() + 3600)
        return found

    monkeypatch.setattr(platform.checker, "examine", examine_until_late)
    result = await platform.submissions.put(Submission(HINDI, text_of(original[:190]), 2), None, deadline=600)
    monkeypatch.undo()
    assert result.estimated and [match.story_id for match in result.matches] == [1]
    assert examined == [2], "it was checked again after its deadline"
    assert set(platform.reads) == {1}, "a text was read after the deadline"
    platform.is_available = True
    await platform.upkeep.do_due_work()
    assert await platform.flagged() == {(1, 2): SIMILAR, (2, 3): SIMILAR}
