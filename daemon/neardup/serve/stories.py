"""What the API answers about stories: checks before they are published, comparisons, stories on record, and drafts."""

import asyncio
import sqlite3
from collections.abc import Callable, Coroutine, Iterable, Mapping
from typing import Any, TypeVar

from msgspec import to_builtins
from msgspec.structs import asdict

from neardup import errors
from neardup.core.page import Unreadable, prepare
from neardup.core.verify.text import Text
from neardup.http.requests import INVALID, TOO_LARGE, ProblemType, Refused, WrongMember
from neardup.ledger import flags, now_ms, removed_texts, similarities, snapshot, story_rows, submissions
from neardup.ledger.flags import JOINING, Selection, find_earlier_story
from neardup.option_values import Right
from neardup.pages.results import ReadFailed, explain
from neardup.query.check import CheckResult, Match, Submission
from neardup.query.compare import (
    LoadedStory,
    choose_thresholds,
    describe_stories,
    find_evidence,
    load_story,
    read_common,
)
from neardup.query.proof import prove
from neardup.records import Limit, Mark, MarkReason, Skip, Spans, show_id
from neardup.serve import messages
from neardup.serve.messages import StoryId, parse_story_id
from neardup.serve.operations import Operations
from neardup.serve.service import Deadline, ServiceParts
from neardup.source.parse import check_path, make_printable, parse_time, refuse_work
from neardup.telemetry.metrics import CHECKS

MOST_WORDS = 500_000  # five novels
DAY_MS = 86_400_000
UNKNOWN_STORY = ProblemType("unknown-story", 404, "The story is not on record")
NO_STORY = ProblemType("no-story", 422, "The text or the page yields no story to compare")
NO_PROOF = ProblemType("no-proof", 404, "No text of the story was recorded, or no key signs proofs")
FORGOTTEN = ProblemType("forgotten", 409, "The story was forgotten on request")
UNKNOWN_DRAFT = ProblemType("unknown-draft", 404, "There is no such draft, or it has expired")
OTHER_AUTHOR = ProblemType("other-author", 409, "The story with this id is by another author")
T = TypeVar("T")
V = TypeVar("V")
AT_ONCE = 2  # stories of a batch
OPERATIONS = Operations()


async def read_text(parts: ServiceParts, text: str | None, html: str | None) -> Text:
    """The text of a story that is given as a text or as a page, with all that a check needs made.

    A page is read in a reader process, because hostile markup can keep a parser busy for hours.  Raises Refused if
    there is no story.
    """
    given = html if text is None else text
    assert given is not None
    encoded, most = given.encode(), parts.config.content.max_bytes
    if text is None:
        found = await parts.pool.prepare(encoded[:most])
    else:
        found = await asyncio.to_thread(prepare, Text(encoded[:most].decode(errors="ignore")))
    if isinstance(found, Unreadable | ReadFailed):
        raise Refused(NO_STORY, explain(found), reason=found.reason)
    if len(found.word_hashes) > MOST_WORDS:
        raise Refused(TOO_LARGE, f"the story has more than {MOST_WORDS:,} words")
    if len(encoded) > most:
        found.marks = (Mark(MarkReason.TRUNCATED, Limit.SIZE),)
    return found


async def load_story_on_record(parts: ServiceParts, story_id: StoryId) -> LoadedStory:
    """The current text of a story on record.

    Raises Refused if there is no such story or its page yields no text, Transient if the store does not answer.
    """
    known = (await parts.reader.do(describe_stories, [story_id.number])).get(story_id.number)
    if known is None:
        raise _refuse_unknown_story(story_id)
    story = await load_story(parts.pool, known)
    if not isinstance(story, LoadedStory):
        raise Refused(NO_STORY, f"story {story_id.shown}: {story.why}")
    return story


async def load_compared_story(parts: ServiceParts, side: messages.ComparedStory) -> LoadedStory:
    """One side of a comparison.  Raises as `read_text` and `load_story_on_record` do."""
    if side.story_id is not None:
        return await load_story_on_record(parts, parse_story_id(side.story_id))
    found = await read_text(parts, side.text, side.html)
    return LoadedStory(found, {})


async def _finish_all(work: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """The results, once all have ended: what went on after the answer would have no turn.  Raises the first error."""
    results = list[T]()
    for result in await asyncio.gather(*work, return_exceptions=True):
        if isinstance(result, BaseException):
            raise result
        results.append(result)
    return results


# Checks.


@OPERATIONS.add("POST", "/v1/check", Right.CHECK, NO_STORY, lane="by size")
async def check(parts: ServiceParts, request: messages.CheckRequest, deadline: Deadline) -> messages.CheckAnswer:
    """Check a story against those on record; nothing is stored"""
    story_id = None if request.id is None else parse_story_id(request.id)
    submission = await _make_submission(parts, request, story_id)
    return _answer_of(await parts.checker.check(submission, deadline=deadline.left), story_id, deadline)


@OPERATIONS.add("POST", "/v1/check:batch", Right.CHECK, lane="long")
async def check_batch(parts: ServiceParts, request: messages.BatchRequest, deadline: Deadline) -> messages.BatchAnswer:
    """Check up to 100 stories, each by itself"""
    slots = asyncio.Semaphore(AT_ONCE)

    async def result_of(story: messages.CheckRequest) -> messages.CheckAnswer | messages.Problem:
        async with slots:
            try:
                return await check(parts, story, deadline)
            except Refused as refused:
                return messages.make_problem(refused)

    return messages.BatchAnswer(results=await _finish_all(map(result_of, request.stories)))


async def _make_submission(parts: ServiceParts, request: messages.TextRequest, story_id: StoryId | None) -> Submission:
    """The submission that a request describes, its members as a listing would have them.  Raises Refused."""
    if story_id is not None:
        _parse_member("id", refuse_work, str(story_id.shown))
    return Submission(
        language=_parse_member("language", parts.config.registry.find, request.language),
        text=await read_text(parts, request.text, request.html),
        story_id=None if story_id is None else story_id.number,
        name=None if story_id is None else story_id.name,
        author_id=request.author_id or None,
        title=make_printable(request.title),
        published_at=_parse_published_at(request),
        series_id=(request.series_id or None) if isinstance(request, messages.StoryRequest) else None,
        is_draft=isinstance(request, messages.DraftRequest),
    )


def _parse_published_at(request: messages.TextRequest) -> int | None:
    given = request.published_at if isinstance(request, messages.StoryRequest) else None
    return None if given is None else parse_time(given)


def _parse_member(member: str, parse: Callable[[V], T], value: V) -> T:
    """The parsed member of a request.  Raises Refused where `parse` raises ValueError."""
    try:
        return parse(value)
    except ValueError as error:
        raise _refuse_member(member, str(error)) from None


def _refuse_member(member: str, why: str) -> Refused:
    return Refused(INVALID, why, errors=(WrongMember(member, why),))


def _answer_of(result: CheckResult, story_id: StoryId | None, deadline: Deadline) -> messages.CheckAnswer:
    CHECKS.labels(result.verdict, str(result.estimated).lower()).inc()
    answer = {
        "story_id": None if story_id is None else story_id.shown,
        "matches": [_match_of(match) for match in result.matches],
        "took_ms": round(1000 * deadline.taken, 1),
    }
    return messages.CheckAnswer(**asdict(result) | answer)


def _match_of(match: Match) -> messages.Match:
    spans = [
        messages.Span(start=start, end=end, match_start=match_start, match_end=match_end, words=end - start)
        for start, end, match_start, match_end in match.spans
    ]
    found = asdict(match)
    return messages.Match(**found | {"scores": found, "spans": spans})


# Comparisons, and stories on record.


@OPERATIONS.add("POST", "/v1/compare", Right.CHECK, NO_STORY, UNKNOWN_STORY, lane="long")
async def compare(parts: ServiceParts, request: messages.CompareRequest, deadline: Deadline) -> messages.CompareAnswer:
    """Compare two stories"""
    a, b = await _finish_all(load_compared_story(parts, side) for side in (request.a, request.b))
    common = await parts.reader.do(read_common, a, b)
    found = await asyncio.to_thread(find_evidence, a, b, choose_thresholds(parts.config.detection, a, b), common)
    return messages.CompareAnswer(
        kind=found.kind,
        similarity=found.similarity or 0.0,
        scores=messages.Scores.model_validate(found, from_attributes=True),
        share_a=found.share_a or 0.0,
        share_b=found.share_b or 0.0,
        spans_a=list(found.spans_a),
        spans_b=list(found.spans_b),
        passages=[messages.CopiedPassage.model_validate(to_builtins(passage)) for passage in found.passages],
        took_ms=round(1000 * deadline.taken, 1),
    )


@OPERATIONS.add("GET", "/v1/stories/{id}", Right.CHECK, UNKNOWN_STORY)
async def story_of(parts: ServiceParts, story_id: StoryId, _: Deadline) -> messages.Stored:
    """Show a story on record"""
    found = await parts.reader.do(similarities.read_similarity, story_id.number)
    if found is None:
        raise _refuse_unknown_story(story_id)
    removed = await parts.reader.do(removed_texts.read_of_stories, [story_id.number])
    matches = [messages.RemovedMatch(**match, author_id=match["removed_author"]) for match in removed]
    others = {"story_id": found.shown, "hidden": found.is_hidden, "removed_matches": matches}
    return messages.Stored(**asdict(found) | others)


@OPERATIONS.add("GET", "/v1/stories/{id}/matches", Right.CHECK, UNKNOWN_STORY)
async def matches_of(parts: ServiceParts, story_id: StoryId, _: Deadline) -> messages.MatchesAnswer:
    """Show the flagged pairs of a story on record"""
    same_author = parts.config.detection.same_author == "keep"
    matches = await parts.reader.do(_read_matches, story_id, same_author=same_author)
    return messages.MatchesAnswer(story_id=story_id.shown, matches=matches)


@OPERATIONS.add("GET", "/v1/stories/{id}/proof", Right.CHECK, NO_PROOF)
async def proof_of(parts: ServiceParts, story_id: StoryId, _: Deadline) -> messages.ProofAnswer:
    """Prove since when the texts of a story are known"""
    try:
        proof = await asyncio.to_thread(prove, parts.config, story_id.number)
    except errors.Misuse as error:
        raise Refused(NO_PROOF, str(error)) from None
    if proof is None:
        raise Refused(NO_PROOF, f"no text of {story_id.shown} was recorded")
    return messages.ProofAnswer.model_validate(proof, from_attributes=True)


@OPERATIONS.add("PUT", "/v1/stories/{id}", Right.STORE, NO_STORY, FORGOTTEN, lane="by size", writes=True)
async def put(
    parts: ServiceParts, story_id: StoryId, request: messages.PutRequest, deadline: Deadline
) -> messages.CheckAnswer:
    """Check a story and store it; the same request again changes nothing"""
    path = None if request.path is None else _parse_member("path", check_path, request.path)
    submission = await _make_submission(parts, request, story_id)
    page = None if request.html is None else request.html.encode()
    try:
        result = await parts.submissions.put(submission, page, path, restore=request.restore, deadline=deadline.left)
    except errors.Forgotten as error:
        raise Refused(FORGOTTEN, str(error)) from None
    except errors.Misuse as error:
        raise Refused(NO_STORY, str(error), reason=Skip.NOT_TEXT) from None
    return _answer_of(result, story_id, deadline)


@OPERATIONS.add("DELETE", "/v1/stories/{id}", Right.FORGET, UNKNOWN_STORY, writes=True)
async def forget(parts: ServiceParts, story_id: StoryId, _: Deadline) -> messages.Forgotten:
    """Forget a story; a later listing does not bring it back"""
    if not await parts.submissions.forget(story_id.number):
        raise _refuse_unknown_story(story_id)
    return messages.Forgotten(story_id=story_id.shown)


def _refuse_unknown_story(story_id: StoryId) -> Refused:
    return Refused(UNKNOWN_STORY, f"story {story_id.shown} is not on record")


def _read_matches(db: sqlite3.Connection, story_id: StoryId, *, same_author: bool) -> list[messages.RecordedMatch]:
    with snapshot(db):
        if story_id.number not in story_rows.describe(db, [story_id.number]):
            raise _refuse_unknown_story(story_id)
        copied = similarities.read_spans(db, story_id.number)
        rows = flags.select(db, Selection(statuses=JOINING, story=story_id.number, same_author=same_author))
        return [_make_recorded_match(row, story_id.number, *copied[row["flag_id"]]) for row in rows]


def _make_recorded_match(row: Mapping[str, Any], story_id: int, own: Spans, other: Spans) -> messages.RecordedMatch:
    """The row of a pair in the view `pairs`, as a match of one of its stories."""
    is_later = row["story_id"] == story_id
    side = "matched" if is_later else "story"
    earlier, scores = find_earlier_story(row), dict(row)
    if not is_later:
        scores |= {"containment": row["matched_containment"], "matched_containment": row["containment"]}
    match = {
        **{name: row[f"{side}_{name}"] for name in ("title", "author_id", "path", "published_at")},
        "story_id": show_id(row[f"{side}_id"], row[f"{side}_name"]),
        "catalogue": row["catalogue"] if is_later else None,
        "scores": scores,
        "earlier": None if earlier is None else earlier == row[f"{side}_id"],
        "spans": own.tolist(),
        "match_spans": other.tolist(),
    }
    return messages.RecordedMatch(**dict(row) | match)


# Drafts.


@OPERATIONS.add("PUT", "/v1/drafts/{id}", Right.STORE, NO_STORY, FORGOTTEN, OTHER_AUTHOR, lane="by size", writes=True)
async def put_draft(
    parts: ServiceParts, story_id: StoryId, request: messages.DraftRequest, deadline: Deadline
) -> messages.CheckAnswer:
    """Store a draft, in place of the former one, and check it; what its author wrote before is no match"""
    submission = await _make_submission(parts, request, story_id)
    if submission.author_id is None:
        raise _refuse_member("author_id", "a draft has an author")
    now, text = now_ms(), submission.text
    draft = submissions.Draft(
        story_id.number,
        story_id.name,
        submission.language,
        submission.author_id,
        submission.title,
        text.written,
        text.fingerprint.words,
        saved_at=now,
        expires_at=now + parts.config.serve.draft_days * DAY_MS,
    )
    try:
        await parts.submissions.write(submissions.put_draft, draft)
    except errors.Forgotten as error:
        raise Refused(FORGOTTEN, str(error)) from None
    except submissions.OfAnotherAuthor as error:
        raise Refused(OTHER_AUTHOR, str(error)) from None
    return _answer_of(await parts.checker.check(submission, deadline=deadline.left), story_id, deadline)


@OPERATIONS.add("POST", "/v1/drafts/{id}/check", Right.CHECK, NO_STORY, UNKNOWN_DRAFT, OTHER_AUTHOR, lane="long")
async def check_draft(parts: ServiceParts, story_id: StoryId, deadline: Deadline) -> messages.CheckAnswer:
    """Check a draft again, as it was saved last"""
    draft = await _find_draft(parts, story_id)
    text = await read_text(parts, draft.text, None)
    submission = Submission(
        draft.language, text, draft.story_id, draft.name, draft.author_id, draft.title, is_draft=True
    )
    try:
        await parts.reader.do(submissions.refuse_other_author, draft)
    except submissions.OfAnotherAuthor as error:  # since it was saved
        raise Refused(OTHER_AUTHOR, str(error)) from None
    return _answer_of(await parts.checker.check(submission, deadline=deadline.left), story_id, deadline)


@OPERATIONS.add("GET", "/v1/drafts/{id}", Right.CHECK, UNKNOWN_DRAFT)
async def draft_of(parts: ServiceParts, story_id: StoryId, _: Deadline) -> messages.Draft:
    """Show when a draft was saved, and when it expires"""
    draft = await _find_draft(parts, story_id)
    return messages.Draft(**draft._asdict() | {"story_id": story_id.shown})


@OPERATIONS.add("DELETE", "/v1/drafts/{id}", Right.STORE, UNKNOWN_DRAFT, writes=True)
async def discard_draft(parts: ServiceParts, story_id: StoryId, _: Deadline) -> messages.DiscardedDraft:
    """Discard a draft"""
    await _find_draft(parts, story_id)
    await parts.submissions.write(submissions.remove_draft, story_id.number)
    return messages.DiscardedDraft(story_id=story_id.shown)


async def _find_draft(parts: ServiceParts, story_id: StoryId) -> submissions.Draft:
    draft = await parts.reader.do(submissions.find_draft, story_id.number, now_ms())
    if draft is None:
        raise Refused(UNKNOWN_DRAFT, f"there is no draft {story_id.shown}, or it has expired")
    return draft
