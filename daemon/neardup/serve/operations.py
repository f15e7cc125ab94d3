"""The operations of the API: what each does, and the one table of them.

An operation is a function of the open parts, the id and the body that it takes, and a deadline; it returns its answer,
or raises Refused.  The routes and the OpenAPI document are made from the table at the end.
"""

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeVar

from pydantic import BaseModel

from neardup import errors
from neardup.core.page import Unreadable, prepare
from neardup.core.verify.text import Text
from neardup.http.problems import INVALID, TOO_LARGE, ProblemType, Refused, WrongMember
from neardup.ledger import (
    author_copies,
    complaints,
    drafts,
    flags,
    now_ms,
    permissions,
    removed_texts,
    similarities,
    snapshot,
    stories,
)
from neardup.ledger.complaints import Closed, Complaint
from neardup.ledger.flags import JOINING, Selection, earlier_of
from neardup.ledger.permissions import Grant, PermissionFilter, PermissionRefused, Refusal
from neardup.pages.results import ReadFailed, explain
from neardup.query.check import CheckResult, Submission
from neardup.query.check import Match as FoundMatch
from neardup.query.compare import describe_stories, load_story, read_common
from neardup.query.complaints import ComplaintRefused, GivenComplaint, Why, receive
from neardup.query.evidence import LoadedStory, choose_thresholds, find_evidence
from neardup.query.proof import prove
from neardup.records import Limit, Mark, MarkReason, Skip, Spans, rfc3339, shown_id
from neardup.serve import messages
from neardup.serve.author_tokens import EXPIRED_TOKEN
from neardup.serve.messages import (
    AuthorCopies,
    AuthorCopy,
    AuthorNews,
    AuthorToken,
    BatchAnswer,
    BatchRequest,
    CheckAnswer,
    CheckRequest,
    CompareAnswer,
    ComparedStory,
    CompareRequest,
    ComplaintAnswerRequest,
    ComplaintRequest,
    ComplaintsAnswer,
    ComplaintsQuery,
    CopiedPassage,
    CopiesQuery,
    Digest,
    DigestQuery,
    DiscardedDraft,
    Draft,
    DraftRequest,
    Forgotten,
    ForgottenComplainant,
    Match,
    MatchesAnswer,
    PermissionRequest,
    PermissionsAnswer,
    PermissionsQuery,
    Problem,
    ProofAnswer,
    PutRequest,
    RecordedMatch,
    RemovedMatch,
    Scores,
    Span,
    Stored,
    StoryId,
    StoryRequest,
    TextRequest,
    problem_of,
    story_id_of,
)
from neardup.serve.service import Deadline, ServiceParts
from neardup.serve.tokens import Right
from neardup.source.parse import check_path, make_printable, parse_time, refuse_work
from neardup.telemetry.metrics import CHECKS

MOST_WORDS = 500_000  # five novels
DAY_MS = 86_400_000
UNKNOWN_STORY = ProblemType("unknown-story", 404, "The story is not on record")
FORGOTTEN = ProblemType("forgotten", 409, "The story was forgotten on request")
UNKNOWN_DRAFT = ProblemType("unknown-draft", 404, "There is no such draft, or it has expired")
OTHER_AUTHOR = ProblemType("other-author", 409, "The story with this id is by another author")
NO_STORY = ProblemType("no-story", 422, "The text or the page yields no story to compare")
NO_PROOF = ProblemType("no-proof", 404, "No text of the story was recorded, or no key signs proofs")
UNKNOWN_COMPLAINT = ProblemType("unknown-complaint", 404, "There is no complaint with this number")
OWN_STORY = ProblemType("own-story", 409, "The story is the complainant's own, or its own original")
DUPLICATE_COMPLAINT = ProblemType("duplicate-complaint", 409, "The complainant complained of this before")
CLOSED_COMPLAINT = ProblemType("closed-complaint", 409, "The complaint is closed")
OF_COMPLAINTS = {
    Why.UNKNOWN_STORY: UNKNOWN_STORY,
    Why.OWN_STORY: OWN_STORY,
    Why.NO_STORY: NO_STORY,
    Why.DUPLICATE: DUPLICATE_COMPLAINT,
    Why.TOO_LARGE: TOO_LARGE,
    Why.INVALID: INVALID,
}
NO_AUTHOR_KEY = ProblemType("no-author-key", 404, "No key signs the tokens of authors")
OTHER_AUTHORS_TOKEN = ProblemType("other-authors-token", 403, "The token is that of another author")
MAX_NUMBER = 2**63 - 1
UNKNOWN_PERMISSION = ProblemType("unknown-permission", 404, "There is no such permission")
NOT_ENTERED = ProblemType("permission-refused", 409, "The permission is not entered, or not revoked")
MOST_NEWS = 20  # copies of an author in a digest
T = TypeVar("T")
V = TypeVar("V")
AT_ONCE = 2  # stories of a batch


async def text_of(parts: ServiceParts, text: str | None, html: str | None) -> Text:
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


async def story_on_record(parts: ServiceParts, story_id: StoryId) -> LoadedStory:
    """The current text of a story on record.

    Raises Refused if there is no such story or its page yields no text, Transient if the store does not answer.
    """
    known = await parts.reader.do(describe_stories, [story_id.number])
    if story_id.number not in known:
        raise Refused(UNKNOWN_STORY, f"story {story_id.shown} is not on record")
    story = await load_story(parts.pool, known[story_id.number])
    if not isinstance(story, LoadedStory):
        raise Refused(NO_STORY, f"story {story_id.shown}: {story.why}")
    return story


async def compared_story(parts: ServiceParts, side: ComparedStory) -> LoadedStory:
    """One side of a comparison.  Raises as `text_of` and `story_on_record` do."""
    if side.story_id is not None:
        return await story_on_record(parts, story_id_of(side.story_id))
    found = await text_of(parts, side.text, side.html)
    return LoadedStory(found, {})


# Checks.


async def check(parts: ServiceParts, request: CheckRequest, deadline: Deadline) -> CheckAnswer:
    """POST /v1/check.  Raises Refused."""
    story_id = None if request.id is None else story_id_of(request.id)
    submission = await _submission_of(parts, request, story_id)
    return _answer_of(await parts.checker.check(submission, deadline=deadline.left), story_id, deadline)


async def check_batch(parts: ServiceParts, request: BatchRequest, deadline: Deadline) -> BatchAnswer:
    """POST /v1/check:batch.  A story that cannot be checked has a problem in place of a result."""
    slots = asyncio.Semaphore(AT_ONCE)

    async def result_of(story: CheckRequest) -> CheckAnswer | Problem:
        async with slots:
            try:
                return await check(parts, story, deadline)
            except Refused as refused:
                return problem_of(refused)

    return BatchAnswer(results=await asyncio.gather(*map(result_of, request.stories)))


async def put(parts: ServiceParts, story_id: StoryId, request: PutRequest, deadline: Deadline) -> CheckAnswer:
    """PUT /v1/stories/{id}.  Raises Refused."""
    path = None if request.path is None else _valid("path", check_path, request.path)
    submission = await _submission_of(parts, request, story_id)
    page = None if request.html is None else request.html.encode()
    try:
        result = await parts.submissions.put(submission, page, path, again=request.restore, deadline=deadline.left)
    except errors.Forgotten as error:
        raise Refused(FORGOTTEN, str(error)) from None
    except errors.Misuse as error:
        raise Refused(NO_STORY, str(error), reason=Skip.NOT_TEXT) from None
    return _answer_of(result, story_id, deadline)


async def _submission_of(parts: ServiceParts, request: TextRequest, story_id: StoryId | None) -> Submission:
    """The submission that a request describes, its members as a listing would have them.  Raises Refused."""
    if story_id is not None:
        _valid("id", refuse_work, str(story_id.shown))
    return Submission(
        language=_valid("language", parts.config.registry.find, request.language),
        text=await text_of(parts, request.text, request.html),
        story_id=None if story_id is None else story_id.number,
        name=None if story_id is None else story_id.name,
        author_id=request.author_id or None,
        title=make_printable(request.title),
        published_at=_published_at(request),
        series_id=(request.series_id or None) if isinstance(request, StoryRequest) else None,
        is_draft=isinstance(request, DraftRequest),
    )


def _published_at(request: TextRequest) -> int | None:
    given = request.published_at if isinstance(request, StoryRequest) else None
    return None if given is None else parse_time(given)


def _valid(member: str, parse: Callable[[V], T], value: V) -> T:
    """The parsed member of a request.  Raises Refused where `parse` raises ValueError."""
    try:
        return parse(value)
    except ValueError as error:
        raise _refuse_member(member, str(error)) from None


def _refuse_member(member: str, why: str) -> Refused:
    return Refused(INVALID, why, errors=(WrongMember(member, why),))


def _answer_of(result: CheckResult, story_id: StoryId | None, deadline: Deadline) -> CheckAnswer:
    CHECKS.labels(result.verdict, str(result.estimated).lower()).inc()
    return CheckAnswer(
        story_id=None if story_id is None else story_id.shown,
        verdict=result.verdict,
        similarity=result.similarity,
        left_out=result.left_out,
        matches=[_match_of(match) for match in result.matches],
        words=result.words,
        fingerprint_version=result.fingerprint_version,
        estimated=result.estimated,
        reasons=list(result.reasons),
        took_ms=round(1000 * deadline.taken, 1),
    )


def _match_of(match: FoundMatch) -> Match:
    return Match(
        story_id=match.story_id,
        title=match.title,
        author_id=match.author_id,
        path=match.path,
        published_at=rfc3339(match.published_at),
        catalogue=match.catalogue,
        kind=match.kind,
        similarity=match.similarity,
        scores=Scores.model_validate(match, from_attributes=True),
        estimated=match.estimated,
        permission_id=match.permission_id,
        spans=[
            Span(start=start, end=end, match_start=match_start, match_end=match_end, words=end - start)
            for start, end, match_start, match_end in match.spans
        ],
    )


# Drafts.


async def put_draft(parts: ServiceParts, story_id: StoryId, request: DraftRequest, deadline: Deadline) -> CheckAnswer:
    """PUT /v1/drafts/{id}.  The draft is stored before it is checked.  Raises Refused."""
    submission = await _submission_of(parts, request, story_id)
    if submission.author_id is None:
        raise _refuse_member("author_id", "a draft has an author")
    now, text = now_ms(), submission.text
    draft = drafts.Draft(
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
        await parts.submissions.put_draft(draft)
    except errors.Forgotten as error:
        raise Refused(FORGOTTEN, str(error)) from None
    except drafts.OfAnotherAuthor as error:
        raise Refused(OTHER_AUTHOR, str(error)) from None
    return _answer_of(await parts.checker.check(submission, deadline=deadline.left), story_id, deadline)


async def check_draft(parts: ServiceParts, story_id: StoryId, deadline: Deadline) -> CheckAnswer:
    """POST /v1/drafts/{id}/check: as when it was saved, against the stories of now.  Raises Refused."""
    draft = await _find_draft(parts, story_id)
    text = await text_of(parts, draft.text, None)
    submission = Submission(
        draft.language, text, draft.story_id, draft.name, draft.author_id, draft.title, is_draft=True
    )
    try:
        await parts.reader.do(drafts.refuse_other_author, draft)
    except drafts.OfAnotherAuthor as error:  # since it was saved
        raise Refused(OTHER_AUTHOR, str(error)) from None
    return _answer_of(await parts.checker.check(submission, deadline=deadline.left), story_id, deadline)


async def draft_of(parts: ServiceParts, story_id: StoryId, _: Deadline) -> Draft:
    """GET /v1/drafts/{id}.  Raises Refused if there is none."""
    draft = await _find_draft(parts, story_id)
    return Draft(
        story_id=shown_id(draft.story_id, draft.name),
        language=draft.language,
        title=draft.title,
        author_id=draft.author_id,
        words=draft.words,
        saved_at=rfc3339(draft.saved_at),
        expires_at=rfc3339(draft.expires_at),
    )


async def discard_draft(parts: ServiceParts, story_id: StoryId, _: Deadline) -> DiscardedDraft:
    """DELETE /v1/drafts/{id}.  Raises Refused if there is none."""
    await _find_draft(parts, story_id)
    await parts.submissions.discard_draft(story_id.number)
    return DiscardedDraft(story_id=story_id.shown)


async def _find_draft(parts: ServiceParts, story_id: StoryId) -> drafts.Draft:
    draft = await parts.reader.do(drafts.find_draft, story_id.number, now_ms())
    if draft is None:
        raise Refused(UNKNOWN_DRAFT, f"there is no draft {story_id.shown}, or it has expired")
    return draft


# Comparisons.


async def compare(parts: ServiceParts, request: CompareRequest, deadline: Deadline) -> CompareAnswer:
    """POST /v1/compare.  Raises as `compared_story` does."""
    a, b = await asyncio.gather(compared_story(parts, request.a), compared_story(parts, request.b))
    common = await parts.reader.do(read_common, a, b)
    found = await asyncio.to_thread(find_evidence, a, b, choose_thresholds(parts.config.detection, a, b), common)
    return CompareAnswer(
        kind=found.kind,
        similarity=found.similarity or 0.0,
        scores=Scores.model_validate(found, from_attributes=True),
        share_a=found.share_a or 0.0,
        share_b=found.share_b or 0.0,
        spans_a=list(found.spans_a),
        spans_b=list(found.spans_b),
        passages=[CopiedPassage.model_validate(asdict(passage)) for passage in found.passages],
        took_ms=round(1000 * deadline.taken, 1),
    )


# Stories on record.


async def story_of(parts: ServiceParts, story_id: StoryId, _: Deadline) -> Stored:
    """GET /v1/stories/{id}.  Raises Refused if there is no such story."""
    found = await parts.reader.do(similarities.of_story, story_id.number)
    if found is None:
        raise _refuse_unknown_story(story_id)
    return Stored(
        story_id=found.shown,
        language=found.language,
        title=found.title,
        author_id=found.author_id,
        path=found.path,
        published_at=rfc3339(found.published_at),
        words=found.words,
        copied_words=found.copied_words,
        similarity=found.similarity,
        hidden=found.is_hidden,
        removed_matches=[
            RemovedMatch(
                author_id=match["removed_author"],
                removed_at=rfc3339(match["removed_at"]),
                kind=match["kind"],
                similarity=match["similarity"],
            )
            for match in await parts.reader.do(removed_texts.of_stories, [story_id.number])
        ],
    )


async def matches_of(parts: ServiceParts, story_id: StoryId, _: Deadline) -> MatchesAnswer:
    """GET /v1/stories/{id}/matches.  Raises Refused if there is no such story."""
    same_author = parts.config.detection.same_author == "keep"
    matches = await parts.reader.do(_matches, story_id, same_author=same_author)
    return MatchesAnswer(story_id=story_id.shown, matches=matches)


async def proof_of(parts: ServiceParts, story_id: StoryId, _: Deadline) -> ProofAnswer:
    """GET /v1/stories/{id}/proof.  Raises Refused without a key, or if no text of the story was recorded."""
    try:
        proof = await asyncio.to_thread(prove, parts.config, story_id.number)
    except errors.Misuse as error:
        raise Refused(NO_PROOF, str(error)) from None
    if proof is None:
        raise Refused(NO_PROOF, f"no text of {story_id.shown} was recorded")
    return ProofAnswer.model_validate(proof, from_attributes=True)


async def forget(parts: ServiceParts, story_id: StoryId, _: Deadline) -> Forgotten:
    """DELETE /v1/stories/{id}.  Raises Refused if there is no such story."""
    if not await parts.submissions.forget(story_id.number):
        raise _refuse_unknown_story(story_id)
    return Forgotten(story_id=story_id.shown)


def _refuse_unknown_story(story_id: StoryId) -> Refused:
    return Refused(UNKNOWN_STORY, f"story {story_id.shown} is not on record")


def _matches(db: sqlite3.Connection, story_id: StoryId, *, same_author: bool) -> list[RecordedMatch]:
    with snapshot(db):
        if story_id.number not in stories.describe(db, [story_id.number]):
            raise _refuse_unknown_story(story_id)
        copied = similarities.spans_of_flags(db, story_id.number)
        rows = flags.select(db, Selection(statuses=JOINING, story=story_id.number, same_author=same_author))
        return [_recorded_match(dict(row), story_id.number, *copied[row["flag_id"]]) for row in rows]


def _recorded_match(row: Mapping[str, Any], story_id: int, own: Spans, other: Spans) -> RecordedMatch:
    """The row of a pair in the view `pairs`, as a match of one of its stories."""
    is_later = row["story_id"] == story_id
    side = "matched" if is_later else "story"
    containments = row["containment"], row["matched_containment"]
    earlier = earlier_of(row)
    return RecordedMatch(
        story_id=shown_id(row[f"{side}_id"], row[f"{side}_name"]),
        title=row[f"{side}_title"],
        author_id=row[f"{side}_author_id"],
        path=row[f"{side}_path"],
        published_at=rfc3339(row[f"{side}_published_at"]),
        catalogue=row["catalogue"] if is_later else None,
        kind=row["kind"],
        similarity=row["similarity"],
        status=row["status"],
        scores=Scores(
            hamming=row["hamming"],
            jaccard=row["jaccard"],
            containment=containments[0 if is_later else 1],
            matched_containment=containments[1 if is_later else 0],
            longest_run_words=row["longest_run_words"],
            copied_words=row["copied_words"],
        ),
        estimated=bool(row["estimated"]),
        earlier=None if earlier is None else earlier == row[f"{side}_id"],
        spans=own.tolist(),
        match_spans=other.tolist(),
    )


# Complaints.


async def complain(parts: ServiceParts, request: ComplaintRequest, deadline: Deadline) -> messages.Complaint:
    """POST /v1/complaints.  Raises Refused."""
    given = GivenComplaint(
        story_id_of(request.story_id).number,
        request.complainant,
        request.contact,
        request.statement,
        None if request.original_id is None else story_id_of(request.original_id).number,
        request.original_text,
        request.author_id or None,
    )
    try:
        return _complaint(await receive(parts.complaints, given, acknowledged=True, deadline=deadline.left))
    except ComplaintRefused as error:
        raise Refused(OF_COMPLAINTS[error.why], str(error), complaint=error.number) from None


async def complaints_of(parts: ServiceParts, query: ComplaintsQuery, _: Deadline) -> ComplaintsAnswer:
    """GET /v1/complaints."""
    listed = await parts.reader.do(
        complaints.list_complaints, closed=query.closed, limit=query.limit, offset=query.first
    )
    total = await parts.reader.do(complaints.count, closed=query.closed)
    return ComplaintsAnswer(total=total, complaints=list(map(_complaint, listed)))


async def complaint_of(parts: ServiceParts, number: int, _: Deadline) -> messages.Complaint:
    """GET /v1/complaints/{number}.  Raises Refused if there is none."""
    found = await parts.reader.do(complaints.read_complaint, number)
    if found is None:
        raise _refuse_unknown_complaint(number)
    return _complaint(found)


async def answer_complaint(
    parts: ServiceParts, number: int, request: ComplaintAnswerRequest, deadline: Deadline
) -> messages.Complaint:
    """POST /v1/complaints/{number}/answers.  Raises Refused if there is no such complaint, or it is closed."""
    await complaint_of(parts, number, deadline)
    try:
        await parts.complaints.write(complaints.log_answer, number, request.by, None, request.text)
    except Closed as error:
        raise Refused(CLOSED_COMPLAINT, str(error)) from None
    return await complaint_of(parts, number, deadline)


async def forget_complainant(parts: ServiceParts, number: int, _: Deadline) -> ForgottenComplainant:
    """DELETE /v1/complaints/{number}/complainant.  Raises Refused if there is no such complaint."""
    if not await parts.complaints.write(complaints.forget_complainant, number, None):
        raise _refuse_unknown_complaint(number)
    return ForgottenComplainant(number=number)


def _refuse_unknown_complaint(number: int) -> Refused:
    return Refused(UNKNOWN_COMPLAINT, f"there is no complaint {number}")


def _complaint(found: Complaint) -> messages.Complaint:
    return messages.Complaint(
        number=found.number,
        story_id=found.shown,
        original_id=found.original_shown,
        has_original_text=found.has_text,
        statement=found.statement,
        received_at=rfc3339(found.received_at),
        due_at=rfc3339(found.due_at),
        closed_at=rfc3339(found.closed_at),
        outcome=found.outcome,
        evidence=found.evidence and messages.ComplaintEvidence.model_validate(found.evidence),
        log=[messages.ComplaintStep(step=logged.step, at=rfc3339(logged.at), note=logged.note) for logged in found.log],
    )


# Permissions.


async def enter_permission(
    parts: ServiceParts, request: PermissionRequest, caller: str, _: Deadline
) -> messages.Permission:
    """POST /v1/permissions.  Raises Refused."""
    grant = Grant(
        request.granted_by or None,
        None if request.story_id is None else story_id_of(request.story_id).number,
        make_printable(request.catalogue),
        request.granted_to or None,
        make_printable(request.licence),
        make_printable(request.note) or "",
        None if request.since is None else parse_time(request.since),
        None if request.until is None else parse_time(request.until),
    )
    try:
        permission_id = await parts.submissions.permit(grant, caller)
    except PermissionRefused as error:
        problem = UNKNOWN_STORY if error.reason is Refusal.UNKNOWN_STORY else NOT_ENTERED
        raise Refused(problem, str(error), reason=error.reason) from None
    return await _read_permission(parts, permission_id)


async def revoke_permission(parts: ServiceParts, number: int, caller: str, _: Deadline) -> messages.Permission:
    """DELETE /v1/permissions/{number}.  Raises Refused."""
    try:
        await parts.submissions.revoke(number, caller)
    except PermissionRefused as error:
        problem = UNKNOWN_PERMISSION if error.reason is Refusal.UNKNOWN_PERMISSION else NOT_ENTERED
        raise Refused(problem, str(error), reason=error.reason) from None
    return await _read_permission(parts, number)


async def permissions_of(parts: ServiceParts, query: PermissionsQuery, _: Deadline) -> PermissionsAnswer:
    """GET /v1/permissions."""
    story = None if query.story_id is None else story_id_of(query.story_id).number
    chosen, now = PermissionFilter(None, query.author_id or None, story, query.catalogue, not query.ended), now_ms()
    rows = await parts.reader.do(permissions.select, chosen, now, limit=query.limit, offset=query.first)
    total = await parts.reader.do(permissions.count, chosen, now)
    return PermissionsAnswer(total=total, permissions=list(map(_permission, rows)))


async def permission_of(parts: ServiceParts, number: int, _: Deadline) -> messages.Permission:
    """GET /v1/permissions/{number}.  Raises Refused if there is none."""
    return await _read_permission(parts, number)


async def _read_permission(parts: ServiceParts, number: int) -> messages.Permission:
    row = await parts.reader.do(permissions.read, number, now_ms())
    if row is None:
        raise Refused(UNKNOWN_PERMISSION, f"there is no permission {number}")
    return _permission(row)


def _permission(row: Mapping[str, Any]) -> messages.Permission:
    times = {name: rfc3339(row[name]) for name in ("since", "until", "entered_at", "revoked_at")}
    return messages.Permission.model_validate(dict(row) | times)


# Copies of an author's stories.


async def make_author_token(parts: ServiceParts, author_id: str, _: Deadline) -> AuthorToken:
    """POST /v1/authors/{author}/token.  Raises Refused without a key."""
    if parts.author_tokens is None:
        raise Refused(NO_AUTHOR_KEY, "name a key as serve.author_key")
    token, expires_at = parts.author_tokens.make(author_id, now_ms())
    return AuthorToken(author_id=author_id, token=token, expires_at=rfc3339(expires_at))


async def author_copies_of(parts: ServiceParts, author_id: str, query: CopiesQuery, _: Deadline) -> AuthorCopies:
    """GET /v1/authors/{author}/copies."""
    since = 0 if query.since is None else parse_time(query.since)
    found = await parts.reader.do(
        _in_snapshot, author_copies.list_copies, author_id, since, query.before, query.limit + 1
    )
    shown = found[: query.limit]
    return AuthorCopies(
        author_id=author_id,
        copies=[_author_copy(parts, copy) for copy in shown],
        next=shown[-1].flag_id if len(found) > query.limit else None,
    )


async def new_copies(parts: ServiceParts, query: DigestQuery, _: Deadline) -> Digest:
    """GET /v1/authors/copies."""
    found = await parts.reader.do(
        _in_snapshot, author_copies.list_news, parse_time(query.since), query.after, query.limit + 1, MOST_NEWS
    )
    shown = found[: query.limit]
    return Digest(
        authors=[
            AuthorNews(
                author_id=news.author_id, total=news.total, copies=[_author_copy(parts, copy) for copy in news.copies]
            )
            for news in shown
        ],
        next=shown[-1].author_id if len(found) > query.limit else None,
    )


def _in_snapshot(db: sqlite3.Connection, work: Callable[..., list[T]], *arguments: object) -> list[T]:
    with snapshot(db):
        return work(db, *arguments)


def _author_copy(parts: ServiceParts, copy: author_copies.AuthorCopy) -> AuthorCopy:
    """A copy as its author may see it: without moderators and their notes."""
    return AuthorCopy(
        own_story_id=copy.own,
        own_title=copy.own_title,
        story_id=copy.other,
        title=copy.title,
        link=parts.config.content.link_to(copy.language, copy.other),
        published_at=rfc3339(copy.published_at),
        kind=copy.kind,
        similarity=copy.similarity,
        status=copy.status,
        flagged_at=rfc3339(copy.flagged_at),
        is_later=copy.is_later,
    )


# The table.


def author_of(text: str) -> str:
    """The id of an author in a path.  Raises ValueError."""
    if not (found := make_printable(text)):
        raise ValueError("is empty")
    return found


def number_of(text: str) -> int:
    """The number of a complaint or permission.  Raises ValueError."""
    if not (text.isascii() and text.isdecimal() and int(text) <= MAX_NUMBER):
        raise ValueError("the number of a complaint or permission is an integer")
    return int(text)


# What a path may name, by its placeholder: how it is read, and how it is described.
SUBJECTS: dict[str, Callable[[str], StoryId | int | str]] = {
    "id": story_id_of,
    "number": number_of,
    "author": author_of,
}


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation: `work` does it, given the parts, what its path names, its query and its body, and the deadline.

    `lane` is "by size" where the size of the body decides it.  `problems` are those that concern the story;
    every operation may end in the others.  One that `writes` a story waits for those on it that came before.  One that
    `admits_author` takes the token of the author whom its path names in place of one with the right, and one that
    `names_caller` is given the name of the token after the body.
    """

    method: str
    path: str
    summary: str
    right: Right
    request: type[BaseModel] | None
    answer: type[messages.Answer]
    work: Callable[..., Awaitable[messages.Answer]]
    lane: Literal["by size", "short", "long"] = "short"
    problems: tuple[ProblemType, ...] = ()
    writes: bool = False
    query: type[BaseModel] | None = None
    names_caller: bool = False
    admits_author: bool = False

    @property
    def subject(self) -> str | None:
        """The one of SUBJECTS that the path names."""
        return next((name for name in SUBJECTS if f"{{{name}}}" in self.path), None)

    def begin(
        self,
        parts: ServiceParts,
        subject: StoryId | int | str | None,
        query: Any,
        body: Any,
        deadline: Deadline,
        *,
        caller: str,
    ) -> Awaitable[messages.Answer]:
        """Begin the work."""
        given = subject, query, body, caller if self.names_caller else None
        arguments = [argument for argument in given if argument is not None]
        return self.work(parts, *arguments, deadline)


OPERATIONS = (
    Operation(
        "POST",
        "/v1/check",
        "Check a story against those on record; nothing is stored",
        Right.CHECK,
        messages.CheckRequest,
        messages.CheckAnswer,
        check,
        "by size",
        (NO_STORY,),
    ),
    Operation(
        "POST",
        "/v1/check:batch",
        f"Check up to {messages.MOST_STORIES} stories, each by itself",
        Right.CHECK,
        messages.BatchRequest,
        messages.BatchAnswer,
        check_batch,
        "long",
    ),
    Operation(
        "POST",
        "/v1/compare",
        "Compare two stories",
        Right.CHECK,
        messages.CompareRequest,
        messages.CompareAnswer,
        compare,
        "long",
        (NO_STORY, UNKNOWN_STORY),
    ),
    Operation(
        "GET",
        "/v1/stories/{id}",
        "Show a story on record",
        Right.CHECK,
        None,
        messages.Stored,
        story_of,
        problems=(UNKNOWN_STORY,),
    ),
    Operation(
        "GET",
        "/v1/stories/{id}/matches",
        "Show the flagged pairs of a story on record",
        Right.CHECK,
        None,
        messages.MatchesAnswer,
        matches_of,
        problems=(UNKNOWN_STORY,),
    ),
    Operation(
        "GET",
        "/v1/stories/{id}/proof",
        "Prove since when the texts of a story are known",
        Right.CHECK,
        None,
        messages.ProofAnswer,
        proof_of,
        problems=(NO_PROOF,),
    ),
    Operation(
        "PUT",
        "/v1/stories/{id}",
        "Check a story and store it; the same request again changes nothing",
        Right.STORE,
        messages.PutRequest,
        messages.CheckAnswer,
        put,
        "by size",
        (NO_STORY, FORGOTTEN),
        writes=True,
    ),
    Operation(
        "PUT",
        "/v1/drafts/{id}",
        "Store a draft, in place of the former one, and check it; what its author wrote before is no match",
        Right.STORE,
        messages.DraftRequest,
        messages.CheckAnswer,
        put_draft,
        "by size",
        (NO_STORY, FORGOTTEN, OTHER_AUTHOR),
        writes=True,
    ),
    Operation(
        "POST",
        "/v1/drafts/{id}/check",
        "Check a draft again, as it was saved last",
        Right.CHECK,
        None,
        messages.CheckAnswer,
        check_draft,
        "long",
        (NO_STORY, UNKNOWN_DRAFT, OTHER_AUTHOR),
    ),
    Operation(
        "GET",
        "/v1/drafts/{id}",
        "Show when a draft was saved, and when it expires",
        Right.CHECK,
        None,
        messages.Draft,
        draft_of,
        problems=(UNKNOWN_DRAFT,),
    ),
    Operation(
        "DELETE",
        "/v1/drafts/{id}",
        "Discard a draft",
        Right.STORE,
        None,
        messages.DiscardedDraft,
        discard_draft,
        problems=(UNKNOWN_DRAFT,),
        writes=True,
    ),
    Operation(
        "DELETE",
        "/v1/stories/{id}",
        "Forget a story; a later listing does not bring it back",
        Right.FORGET,
        None,
        messages.Forgotten,
        forget,
        writes=True,
        problems=(UNKNOWN_STORY,),
    ),
    Operation(
        "POST",
        "/v1/complaints",
        "Complain of a story; the answer has the number of the complaint, its deadline and the evidence",
        Right.COMPLAIN,
        messages.ComplaintRequest,
        messages.Complaint,
        complain,
        "long",
        (UNKNOWN_STORY, OWN_STORY, DUPLICATE_COMPLAINT, NO_STORY),
    ),
    Operation(
        "GET",
        "/v1/complaints",
        "List the open complaints, the next deadline first, or the closed ones",
        Right.COMPLAIN,
        None,
        messages.ComplaintsAnswer,
        complaints_of,
        query=messages.ComplaintsQuery,
    ),
    Operation(
        "GET",
        "/v1/complaints/{number}",
        "Show a complaint with its evidence and its log",
        Right.COMPLAIN,
        None,
        messages.Complaint,
        complaint_of,
        problems=(UNKNOWN_COMPLAINT,),
    ),
    Operation(
        "POST",
        "/v1/complaints/{number}/answers",
        "Record what the author or the complainant answers; the same words again change nothing",
        Right.COMPLAIN,
        messages.ComplaintAnswerRequest,
        messages.Complaint,
        answer_complaint,
        problems=(UNKNOWN_COMPLAINT, CLOSED_COMPLAINT),
    ),
    Operation(
        "DELETE",
        "/v1/complaints/{number}/complainant",
        "Forget the name, the contact and the words of a complainant; the complaint goes on",
        Right.FORGET,
        None,
        messages.ForgottenComplainant,
        forget_complainant,
        problems=(UNKNOWN_COMPLAINT,),
    ),
    Operation(
        "POST",
        "/v1/permissions",
        "Enter a permission: who may use whose text",
        Right.PERMIT,
        messages.PermissionRequest,
        messages.Permission,
        enter_permission,
        problems=(NOT_ENTERED, UNKNOWN_STORY),
        names_caller=True,
    ),
    Operation(
        "GET",
        "/v1/permissions",
        "List permissions, those entered last first",
        Right.CHECK,
        None,
        messages.PermissionsAnswer,
        permissions_of,
        query=messages.PermissionsQuery,
    ),
    Operation(
        "GET",
        "/v1/permissions/{number}",
        "Show a permission",
        Right.CHECK,
        None,
        messages.Permission,
        permission_of,
        problems=(UNKNOWN_PERMISSION,),
    ),
    Operation(
        "DELETE",
        "/v1/permissions/{number}",
        "Revoke a permission; it stays on record",
        Right.PERMIT,
        None,
        messages.Permission,
        revoke_permission,
        problems=(UNKNOWN_PERMISSION, NOT_ENTERED),
        names_caller=True,
    ),
    Operation(
        "POST",
        "/v1/authors/{author}/token",
        "Make a token by which an author reads the copies of the own stories, until it expires",
        Right.AUTHORS,
        None,
        messages.AuthorToken,
        make_author_token,
        problems=(NO_AUTHOR_KEY,),
    ),
    Operation(
        "GET",
        "/v1/authors/{author}/copies",
        "List the stories by others that hold text of an author's stories, the latest flag first",
        Right.AUTHORS,
        None,
        messages.AuthorCopies,
        author_copies_of,
        problems=(EXPIRED_TOKEN, OTHER_AUTHORS_TOKEN),
        query=messages.CopiesQuery,
        admits_author=True,
    ),
    Operation(
        "GET",
        "/v1/authors/copies",
        "List the new copies since a time, by the author whose text they hold",
        Right.AUTHORS,
        None,
        messages.Digest,
        new_copies,
        query=messages.DigestQuery,
    ),
)
