"""The operations that check a story: `check`, `check_batch` and `put`."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

from neardup import errors
from neardup.app import ServiceParts
from neardup.problem_types import INVALID
from neardup.query.check import CheckResult, Submission
from neardup.query.check import Match as FoundMatch
from neardup.records import Skip, rfc3339
from neardup.serve.answers import BatchAnswer, CheckAnswer, InvalidMember, Match, Problem, Scores, Span
from neardup.serve.lanes import Deadline
from neardup.serve.problems import FORGOTTEN, NO_STORY, Refused, problem_of
from neardup.serve.requests import BatchRequest, CheckRequest, PutRequest, StoryRequest
from neardup.serve.story_ids import StoryId, shown, story_id_of
from neardup.serve.texts import prepared_story
from neardup.source.parse import parse_time, path_of, printable, refuse_work
from neardup.telemetry.metrics import CHECKS

T = TypeVar("T")
V = TypeVar("V")
AT_ONCE = 2  # stories of a batch


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
    path = None if request.path is None else _valid("path", path_of, request.path)
    submission = await _submission_of(parts, request, story_id)
    page = None if request.html is None else request.html.encode()
    try:
        result = await parts.submissions.put(submission, page, path, again=request.restore, deadline=deadline.left)
    except errors.Forgotten as error:
        raise Refused(FORGOTTEN, str(error)) from None
    except errors.Misuse as error:
        raise Refused(NO_STORY, str(error), reason=Skip.NOT_TEXT) from None
    return _answer_of(result, story_id, deadline)


async def _submission_of(parts: ServiceParts, request: StoryRequest, story_id: StoryId | None) -> Submission:
    """The submission that a request describes, its members as a listing would have them.  Raises Refused."""
    if story_id is not None:
        _valid("id", refuse_work, str(story_id.shown))
    return Submission(
        language=_valid("language", parts.config.registry.find, request.language),
        text=await prepared_story(parts, request.text, request.html),
        story_id=None if story_id is None else story_id.number,
        name=None if story_id is None else story_id.name,
        author_id=printable(request.author_id),
        title=printable(request.title),
        published_at=None if request.published_at is None else parse_time(request.published_at),
    )


def _valid(member: str, parse: Callable[[V], T], value: V) -> T:
    """The parsed member of a request.  Raises Refused where `parse` raises ValueError."""
    try:
        return parse(value)
    except ValueError as error:
        raise Refused(INVALID, str(error), errors=(InvalidMember(where=member, what=str(error)),)) from None


def _answer_of(result: CheckResult, story_id: StoryId | None, deadline: Deadline) -> CheckAnswer:
    CHECKS.labels(result.verdict, str(result.estimated).lower()).inc()
    return CheckAnswer(
        story_id=None if story_id is None else story_id.shown,
        verdict=result.verdict,
        similarity=result.similarity,
        matches=[_match_of(match) for match in result.matches],
        words=result.words,
        fingerprint_version=result.fingerprint_version,
        estimated=result.estimated,
        reasons=list(result.reasons),
        took_ms=round(1000 * deadline.taken, 1),
    )


def _match_of(match: FoundMatch) -> Match:
    return Match(
        story_id=shown(match.story_id, match.name),
        title=match.title,
        author_id=match.author_id,
        path=match.path,
        published_at=rfc3339(match.published_at),
        catalogue=match.catalogue,
        kind=match.kind,
        scores=Scores.model_validate(match, from_attributes=True),
        estimated=match.estimated,
        spans=[
            Span(start=start, end=end, match_start=match_start, match_end=match_end, words=end - start)
            for start, end, match_start, match_end in match.spans
        ],
    )
