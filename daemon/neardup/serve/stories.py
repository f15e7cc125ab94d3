"""Stories on record: what the API shows of them, and how one is forgotten."""

import asyncio
import sqlite3
from collections.abc import Mapping
from typing import Any

from neardup import errors
from neardup.http.problems import ProblemType, Refused
from neardup.ledger import flags, removed_texts, similarities, snapshot, stories
from neardup.ledger.flags import JOINING, Selection, find_earlier_story
from neardup.query.compare import describe_stories, load_story
from neardup.query.evidence import LoadedStory
from neardup.query.proof import prove
from neardup.records import Spans, format_time, show_id
from neardup.serve import messages
from neardup.serve.messages import StoryId
from neardup.serve.service import Deadline, ServiceParts

UNKNOWN_STORY = ProblemType("unknown-story", 404, "The story is not on record")
NO_STORY = ProblemType("no-story", 422, "The text or the page yields no story to compare")
NO_PROOF = ProblemType("no-proof", 404, "No text of the story was recorded, or no key signs proofs")


async def load_story_on_record(parts: ServiceParts, story_id: StoryId) -> LoadedStory:
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


async def story_of(parts: ServiceParts, story_id: StoryId, _: Deadline) -> messages.Stored:
    """GET /v1/stories/{id}.  Raises Refused if there is no such story."""
    found = await parts.reader.do(similarities.read_similarity, story_id.number)
    if found is None:
        raise _refuse_unknown_story(story_id)
    return messages.Stored(
        story_id=found.shown,
        language=found.language,
        title=found.title,
        author_id=found.author_id,
        path=found.path,
        published_at=format_time(found.published_at),
        words=found.words,
        copied_words=found.copied_words,
        similarity=found.similarity,
        hidden=found.is_hidden,
        removed_matches=[
            messages.RemovedMatch(
                author_id=match["removed_author"],
                removed_at=format_time(match["removed_at"]),
                kind=match["kind"],
                similarity=match["similarity"],
            )
            for match in await parts.reader.do(removed_texts.read_of_stories, [story_id.number])
        ],
    )


async def matches_of(parts: ServiceParts, story_id: StoryId, _: Deadline) -> messages.MatchesAnswer:
    """GET /v1/stories/{id}/matches.  Raises Refused if there is no such story."""
    same_author = parts.config.detection.same_author == "keep"
    matches = await parts.reader.do(_read_matches, story_id, same_author=same_author)
    return messages.MatchesAnswer(story_id=story_id.shown, matches=matches)


async def proof_of(parts: ServiceParts, story_id: StoryId, _: Deadline) -> messages.ProofAnswer:
    """GET /v1/stories/{id}/proof.  Raises Refused without a key, or if no text of the story was recorded."""
    try:
        proof = await asyncio.to_thread(prove, parts.config, story_id.number)
    except errors.Misuse as error:
        raise Refused(NO_PROOF, str(error)) from None
    if proof is None:
        raise Refused(NO_PROOF, f"no text of {story_id.shown} was recorded")
    return messages.ProofAnswer.model_validate(proof, from_attributes=True)


async def forget(parts: ServiceParts, story_id: StoryId, _: Deadline) -> messages.Forgotten:
    """DELETE /v1/stories/{id}.  Raises Refused if there is no such story."""
    if not await parts.submissions.forget(story_id.number):
        raise _refuse_unknown_story(story_id)
    return messages.Forgotten(story_id=story_id.shown)


def _refuse_unknown_story(story_id: StoryId) -> Refused:
    return Refused(UNKNOWN_STORY, f"story {story_id.shown} is not on record")


def _read_matches(db: sqlite3.Connection, story_id: StoryId, *, same_author: bool) -> list[messages.RecordedMatch]:
    with snapshot(db):
        if story_id.number not in stories.describe(db, [story_id.number]):
            raise _refuse_unknown_story(story_id)
        copied = similarities.read_spans(db, story_id.number)
        rows = flags.select(db, Selection(statuses=JOINING, story=story_id.number, same_author=same_author))
        return [_make_recorded_match(row, story_id.number, *copied[row["flag_id"]]) for row in rows]


def _make_recorded_match(row: Mapping[str, Any], story_id: int, own: Spans, other: Spans) -> messages.RecordedMatch:
    """The row of a pair in the view `pairs`, as a match of one of its stories."""
    is_later = row["story_id"] == story_id
    side = "matched" if is_later else "story"
    containments = row["containment"], row["matched_containment"]
    earlier = find_earlier_story(row)
    return messages.RecordedMatch(
        story_id=show_id(row[f"{side}_id"], row[f"{side}_name"]),
        title=row[f"{side}_title"],
        author_id=row[f"{side}_author_id"],
        path=row[f"{side}_path"],
        published_at=format_time(row[f"{side}_published_at"]),
        catalogue=row["catalogue"] if is_later else None,
        kind=row["kind"],
        similarity=row["similarity"],
        status=row["status"],
        scores=messages.Scores(
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
