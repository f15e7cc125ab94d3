"""Laws of the checker: it finds what a run would flag, reads no page without need, and answers whatever fails."""

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from neardup.config import Detection
from neardup.core.languages import LANGUAGES
from neardup.core.verify.tiers import EXACT, PARTIAL, SIMILAR, TRANSLITERATED
from neardup.errors import Transient
from neardup.ledger import now_ms, versions
from neardup.nomination import lookup
from neardup.query.check import CHECKED_ID, Submission
from neardup.records import Language

from tests.support.checked_ledger import CheckedLedger, checked_ledger, text_of, words_of
from tests.support.languages import GUJARATI, HINDI, MARATHI, ODIA, TAMIL, TELUGU
from tests.support.sample_texts import STORIES, transliterated

ORIGINAL = 7


@pytest.mark.parametrize("language", LANGUAGES)
async def test_copies_are_found_most_severe_first(platform: CheckedLedger, language: Language) -> None:
    original = words_of(language, "a")
    await platform.add(language, 3, words_of(language, "c", 80) + original[:150])
    await platform.add(language, 5, original[:150] + words_of(language, "b", 50))
    await platform.add(language, ORIGINAL, original)
    await platform.add(language, 9, words_of(language, "unrelated"))
    await platform.index_all()
    result = await platform.check(original, language)
    assert [(match.story_id, match.kind) for match in result.matches] == [(ORIGINAL, EXACT), (5, SIMILAR), (3, SIMILAR)]
    first, _, last = result.matches
    assert (first.title, first.jaccard, first.estimated) == (f"title {ORIGINAL}", 1.0, False)
    assert first.spans == ((0, 200, 0, 200),)
    assert last.spans == ((0, 150, 80, 230),), "the span stands elsewhere in the match"
    assert (result.verdict, result.similarity, result.words, result.estimated) == ("copy", 1.0, 200, False)
    assert all(match.story_id != CHECKED_ID for match in result.matches)
    nothing = await platform.check(words_of(language, "new"), language)
    assert (nothing.verdict, nothing.similarity, nothing.matches) == ("clear", 0.0, [])


@pytest.mark.parametrize("language", [HINDI, ODIA, TAMIL])
async def test_a_story_in_another_script_or_under_another_language_is_found(
    platform: CheckedLedger, language: Language
) -> None:
    story = STORIES[language][0]
    await platform.add(TELUGU, 1, transliterated(story, language, TELUGU).split())
    await platform.add(MARATHI, 2, story.split())
    await platform.add(GUJARATI, 3, STORIES[GUJARATI][0].split())
    await platform.index_all()
    found = await platform.check(story.split(), language)
    assert {match.story_id: match.kind for match in found.matches} == dict.fromkeys((1, 2), TRANSLITERATED)
    assert found.similarity > 0.9
    assert all(match.spans for match in found.matches), "a match is shown without its copied words"


async def test_the_similarity_is_the_union_of_what_stands_in_earlier_stories_of_others(platform: CheckedLedger) -> None:
    mine = words_of(GUJARATI, "a", 400)
    await platform.add(GUJARATI, 1, mine[:100] + words_of(GUJARATI, "b", 40), author="x", published_at=10)
    await platform.add(GUJARATI, 2, mine[50:150] + words_of(GUJARATI, "c", 40), author="y", published_at=20)
    await platform.add(GUJARATI, 3, mine[200:300] + words_of(GUJARATI, "d", 40), author="me", published_at=10)
    await platform.add(GUJARATI, 4, mine[300:400] + words_of(GUJARATI, "e", 40), author="z", published_at=40)
    await platform.index_all()
    result = await platform.check(mine, GUJARATI, author="me", published_at=30)
    assert {match.story_id: match.kind for match in result.matches} == dict.fromkeys((1, 2, 4), PARTIAL)
    assert result.similarity == 150 / 400, "own and later stories count for nothing, and words of two sources once"
    assert result.verdict == "review"


@pytest.mark.parametrize(
    ("author", "published_at", "verdict"),
    [("other", 10, "copy"), (None, 10, "copy"), ("other", None, "copy"), ("me", 10, "review"), ("other", 90, "review")],
)
async def test_an_exact_match_is_a_copy_unless_it_is_ones_own_or_later(
    platform: CheckedLedger, author: str | None, published_at: int | None, verdict: str
) -> None:
    original = words_of(MARATHI, "a")
    await platform.add(MARATHI, ORIGINAL, original, author=author, published_at=published_at)
    result = await platform.check(original, MARATHI, author="me", published_at=50)
    assert (result.verdict, [match.kind for match in result.matches]) == (verdict, [EXACT])


async def test_ones_own_passages_count_only_if_same_author_keeps_them(tmp_path: Path) -> None:
    for detection in (Detection(same_author="hide"), Detection(same_author="keep")):
        folder = tmp_path / detection.same_author
        folder.mkdir()
        async with checked_ledger(folder, detection) as platform:
            mine = words_of(TELUGU, "a", 400)
            await platform.add(TELUGU, 1, mine[:100] + words_of(TELUGU, "b", 40), author="me")
            result = await platform.check(mine, TELUGU, author="me")
            assert (result.verdict, result.similarity) == (
                "review" if detection.same_author == "keep" else "clear",
                0.0,
            )


async def test_an_exact_copy_is_found_without_a_read(platform: CheckedLedger) -> None:
    original = words_of(TAMIL, "a")
    await platform.add(TAMIL, ORIGINAL, original)
    await platform.index_all()
    [match] = (await platform.check(original, TAMIL)).matches
    assert (match.kind, platform.reads) == (EXACT, Counter()), "it started a reader process without need"


async def test_a_story_on_record_is_not_its_own_copy(platform: CheckedLedger) -> None:
    original = words_of(TAMIL, "a")
    await platform.add(TAMIL, ORIGINAL, original)
    await platform.add(TAMIL, 8, original)
    await platform.index_all()
    result = await platform.checker.check(Submission(TAMIL, text_of(original), story_id=8))
    assert [match.story_id for match in result.matches] == [ORIGINAL]


async def test_a_text_is_read_once_for_many_checks(platform: CheckedLedger) -> None:
    original = words_of(HINDI, "a")
    await platform.add(HINDI, ORIGINAL, original)
    await platform.index_all()
    await platform.check(original[:150], HINDI)
    found = await asyncio.gather(*(platform.check(original[:n], HINDI) for n in range(151, 160)))
    assert [[match.story_id for match in result.matches] for result in found] == [[ORIGINAL]] * len(found)
    assert platform.reads == {ORIGINAL: 1}


async def test_without_the_store_scores_are_estimated(platform: CheckedLedger) -> None:
    original = words_of(ODIA, "a")
    await platform.add(ODIA, ORIGINAL, original)
    await platform.index_all()
    platform.is_available = False
    result = await platform.check(original[:170], ODIA)
    [match] = result.matches
    assert match.estimated and match.longest_run_words is match.copied_words is None and match.spans == ()
    assert result.estimated
    assert result.reasons == ("1 of 1 texts to compare with could not be read, or not in time",)


async def test_an_index_that_was_never_filled_is_replaced_by_the_ledger(platform: CheckedLedger) -> None:
    original = words_of(HINDI, "a")
    await platform.add(HINDI, ORIGINAL, original)
    result = await platform.check(original, HINDI)
    assert ([match.story_id for match in result.matches], result.reasons) == ([ORIGINAL], ())


async def test_what_neither_index_nor_ledger_can_tell_is_said(
    platform: CheckedLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_: object) -> Any:
        raise Transient("Redis does not answer")

    monkeypatch.setattr(versions, "MAX_UNINDEXED", 1)
    monkeypatch.setattr(lookup, "MAX_UNINDEXED", 1)
    monkeypatch.setattr(lookup, "retry_call", lambda _, call: call())
    original = words_of(HINDI, "a")
    await platform.add(HINDI, ORIGINAL, original)
    await platform.add(HINDI, 8, words_of(HINDI, "b"))
    await platform.index_all()
    monkeypatch.setattr(platform.index, "look_up", fail)
    result = await platform.check(original, HINDI)
    assert result.estimated
    assert result.reasons == ("Redis does not answer: only the latest 1 stories were compared as whole texts",)
    assert [match.story_id for match in result.matches] == [ORIGINAL], "passages find it all the same"


async def test_a_check_never_takes_much_longer_than_its_deadline(
    platform: CheckedLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def hang(*_: object) -> Any:
        await asyncio.Event().wait()

    original = words_of(HINDI, "a")
    await platform.add(HINDI, ORIGINAL, original)
    await platform.index_all()
    monkeypatch.setattr(platform.index, "look_up", hang)
    monkeypatch.setattr(platform, "read", hang)
    began = now_ms()
    result = await platform.check(original[:170], HINDI, deadline=0.2)
    assert now_ms() - began < 5_000
    assert [match.story_id for match in result.matches] == [ORIGINAL], "its signature is in the ledger"
    assert result.estimated and "not in time" in " ".join(result.reasons)
