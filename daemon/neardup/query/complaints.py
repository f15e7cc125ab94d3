"""Receives complaints, and makes their evidence: what `compare` says of the named original, or `check` of all stories.

The service, the desk and the command call the same two functions, with their own connections to the ledger.
"""

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from enum import StrEnum
from typing import Any

from msgspec import Struct

from neardup.config import Detection
from neardup.core.page import Unreadable, prepare
from neardup.core.verify.spans import measure_similarity
from neardup.core.verify.text import Text
from neardup.core.verify.tiers import COPIED_WORDS
from neardup.errors import Fatal, NeardupError
from neardup.ledger import Do, complaints, languages, now_ms
from neardup.ledger.complaints import Complaint, Duplicate, NewComplaint
from neardup.pages.reader_pool import ReaderPool
from neardup.pages.results import explain
from neardup.query.check import Checker, Examined, Submission
from neardup.query.compare import (
    Evidence,
    LoadedStory,
    choose_thresholds,
    describe_stories,
    find_evidence,
    load_story,
    read_common,
)
from neardup.records import LONGEST_PERSON, LONGEST_STATEMENT, Assessment, Language, Signals, format_time, show_id

CHECK_SECONDS = 30.0
SHOWN_MATCHES, SHOWN_PASSAGES, PASSAGE_CHARACTERS = 10, 5, 400
# What the evidence says of a story that was compared, in this order.
SCORES = "hamming", "jaccard", "containment", "longest_run_words", "copied_words"
MEMBERS = "story_id", "title", "kind", "similarity", *SCORES


class Why(StrEnum):
    """Why a complaint is refused."""

    UNKNOWN_STORY = "unknown-story"
    OWN_STORY = "own-story"
    NO_STORY = "no-story"
    DUPLICATE = "duplicate-complaint"
    TOO_LARGE = "too-large"
    INVALID = "invalid"


class ComplaintRefused(NeardupError):
    """A complaint that is not taken; `number` is that of the first one of a duplicate."""

    def __init__(self, why: Why, message: str, number: int | None = None) -> None:
        super().__init__(message)
        self.why = why
        self.number = number


class GivenComplaint(Struct, frozen=True):
    """A complaint as somebody makes it; the original is a story on record, a text, or not named.

    `author_id` is the complainant's own, where the complainant is an author of the platform.
    """

    story_id: int
    complainant: str
    contact: str
    statement: str
    original_id: int | None = None
    original_text: str | None = None
    author_id: str | None = None


class Complaints(Struct, frozen=True):
    """The parts that complaints need: `read` and `write` call work on connections, `days` is until the deadline."""

    read: Do
    write: Do
    pool: ReaderPool
    open_checker: Callable[[], AbstractAsyncContextManager[Checker]]
    detection: Detection
    days: int
    max_bytes: int


async def receive(
    parts: Complaints,
    given: GivenComplaint,
    moderator: str | None = None,
    *,
    acknowledged: bool = False,
    deadline: float = CHECK_SECONDS,
) -> Complaint:
    """Record a complaint, make its evidence, and return it; where the evidence fails, the log says why.

    A check against all stories answers after `deadline` seconds with what is there.
    Raises ComplaintRefused, and as the connections do.
    """
    _refuse_invalid(given, parts.max_bytes)
    known = await parts.read(describe_stories, {given.story_id, given.original_id} - {None})
    for name, story_id in (("story", given.story_id), ("original", given.original_id)):
        if story_id is not None and story_id not in known:
            raise ComplaintRefused(Why.UNKNOWN_STORY, f"the {name} is not on record")
    author_id = known[given.story_id]["author_id"]
    if given.story_id == given.original_id:
        raise ComplaintRefused(Why.OWN_STORY, "the story cannot be its own original")
    if given.author_id is not None and given.author_id == author_id:
        raise ComplaintRefused(Why.OWN_STORY, f"the story is by the complainant, author {author_id}")
    written = given.original_text
    text = None if written is None else await asyncio.to_thread(_read_text, written)
    new = NewComplaint(
        given.story_id,
        given.original_id,
        written,
        None if text is None else text.text_hash,
        given.complainant.strip(),
        given.contact.strip(),
        given.statement.strip(),
    )
    try:
        number = await parts.write(complaints.put, new, parts.days, moderator, acknowledged=acknowledged)
    except Duplicate as error:
        raise ComplaintRefused(Why.DUPLICATE, str(error), error.number) from None
    return await make_evidence(parts, number, deadline)


def _refuse_invalid(given: GivenComplaint, max_bytes: int) -> None:
    for member, text, most in (
        ("complainant", given.complainant, LONGEST_PERSON),
        ("contact", given.contact, LONGEST_PERSON),
        ("statement", given.statement, LONGEST_STATEMENT),
    ):
        if not text.strip():
            raise ComplaintRefused(Why.INVALID, f"{member}: is empty")
        if len(text) > most:
            raise ComplaintRefused(Why.INVALID, f"{member}: has more than {most:,} characters")
    if given.original_text is None:
        return
    if given.original_id is not None:
        raise ComplaintRefused(Why.INVALID, "original: give either its id or its text")
    if len(given.original_text.encode("utf-8", "replace")) > max_bytes:
        raise ComplaintRefused(Why.TOO_LARGE, f"the text of the original has more than {max_bytes:,} bytes")


def _read_text(written: str) -> Text:
    found = prepare(Text(written))
    if isinstance(found, Unreadable):
        raise ComplaintRefused(Why.NO_STORY, f"the text of the original: {explain(found)}")
    return found


async def make_evidence(parts: Complaints, number: int, deadline: float = CHECK_SECONDS) -> Complaint:
    """Compare the story of a complaint with its original, or with all stories, and record what that shows.

    Raises as the connections do.
    """
    complaint: Complaint = await parts.read(complaints.read_complaint, number)
    try:
        evidence = await _compare(parts, complaint, deadline)
    except NeardupError as error:
        await parts.write(complaints.put_evidence, number, None, str(error))
    else:
        await parts.write(complaints.put_evidence, number, evidence)
    made: Complaint = await parts.read(complaints.read_complaint, number)
    return made


async def _compare(parts: Complaints, complaint: Complaint, deadline: float) -> dict[str, Any]:
    """The evidence of a complaint, as JSON-serialisable values.  Raises NeardupError."""
    story = await _load(parts, complaint.story_id)
    if complaint.original_id is None and not complaint.has_text:
        return await _compare_with_all(parts, story, deadline)
    if complaint.original_id is not None:
        original = await _load(parts, complaint.original_id)
    else:
        written = await parts.read(complaints.read_original_text, complaint.number)
        if written is None:
            raise Fatal("the text of the original was forgotten with the complainant")
        original = LoadedStory(await asyncio.to_thread(_read_text, written), {})
    common = await parts.read(read_common, original, story)
    thresholds = choose_thresholds(parts.detection, original, story)
    found = await asyncio.to_thread(find_evidence, original, story, thresholds, common)
    return _describe_pair(found, original) | _make_facts(parts.detection, story, 1)


async def _load(parts: Complaints, story_id: int) -> LoadedStory:
    known = await parts.read(describe_stories, [story_id])
    if story_id not in known:
        raise Fatal(f"story {story_id} is not on record any more")
    story = await load_story(parts.pool, known[story_id])
    if not isinstance(story, LoadedStory):
        raise Fatal(f"story {story_id}: {story.why}")
    return story


def _make_facts(detection: Detection, story: LoadedStory, compared: int) -> dict[str, Any]:
    limits = detection.of(Language(story.known["language"]))
    names = ("hamming", "jaccard", "containment", "passage_words", "rare_share")
    return {
        "made_at": format_time(now_ms()),
        "compared": compared,
        "thresholds": {name: getattr(limits, name) for name in names},
    }


def _describe_pair(found: Evidence, original: LoadedStory) -> dict[str, Any]:
    shown = show_id(original.known["id"], original.known["name"]) if original.known else None
    row = {
        "story_id": shown,
        "title": original.known.get("title"),
        "kind": found.kind,
        "similarity": found.similarity or 0.0,
        **{name: getattr(found, name) for name in SCORES},
        "containment": found.matched_containment,
    }
    passages = [
        {"words": passage.words, "original": _cut(passage.a.text), "story": _cut(passage.b.text)}
        for passage in found.passages[:SHOWN_PASSAGES]
    ]
    return {
        "compared_with": "story" if original.known else "text",
        "kind": found.kind,
        "similarity": found.similarity or 0.0,
        "matches": [] if found.kind is None else [row],
        "near_miss": row if found.kind is None else None,
        "passages": passages,
        "estimated": False,
        "reasons": [],
    }


def _cut(text: str) -> str:
    return text if len(text) <= PASSAGE_CHARACTERS else f"{text[:PASSAGE_CHARACTERS]}…"


async def _compare_with_all(parts: Complaints, story: LoadedStory, deadline: float) -> dict[str, Any]:
    text, known = await asyncio.to_thread(prepare, story.text), story.known
    if isinstance(text, Unreadable):
        raise Fatal(f"story {known['id']}: {explain(text)}")
    submission = Submission(
        Language(known["language"]),
        text,
        known["id"],
        known["name"],
        known["author_id"],
        known["title"],
        known["published_at"],
    )
    async with parts.open_checker() as checker:
        examined = await checker.examine(submission, deadline=deadline)
    result, stored = examined.result, await parts.read(languages.count_by_language)
    matches = [{name: getattr(match, name) for name in MEMBERS} for match in result.matches[:SHOWN_MATCHES]]
    return {
        "compared_with": "all",
        "kind": matches[0]["kind"] if matches else None,
        "similarity": result.similarity,
        "matches": matches,
        "near_miss": None if matches else await _find_nearest(parts, examined),
        "passages": [],
        "estimated": result.estimated,
        "reasons": list(result.reasons),
    } | _make_facts(parts.detection, story, sum(stored.values()) - 1)


async def _find_nearest(parts: Complaints, examined: Examined) -> dict[str, Any] | None:
    """The best of the stories that were compared, none of which is copied; None if none was like the text at all."""
    words = examined.result.words
    misses: list[tuple[float, float, int, Assessment]] = [
        (measure_similarity(found, words, pair.b.words), found.signals.containment, pair.b.id, found)
        for pair, found in examined.assessed
        if found is not None and found.kind is None
    ]
    if not misses:
        return None
    similarity, _, story_id, best = max(misses, key=lambda miss: miss[:3])
    known = (await parts.read(describe_stories, [story_id])).get(story_id)
    signals: Signals = best.signals
    return {
        "story_id": story_id if known is None else show_id(story_id, known["name"]),
        "title": known and known["title"],
        "kind": None,
        "similarity": similarity,
        "hamming": signals.hamming,
        "jaccard": signals.jaccard,
        "containment": signals.containment_a,
        "longest_run_words": signals.longest_run_words,
        "copied_words": signals.extra.get(COPIED_WORDS),
    }
