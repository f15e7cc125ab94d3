"""The operations on a story that is on record: `story_of`, `matches_of` and `forget`."""

import sqlite3
from collections.abc import Mapping
from typing import Any

from neardup.app import ServiceParts
from neardup.ledger import flags, similarities, snapshot, stories
from neardup.ledger.flags import JOINING, Selection
from neardup.moderation.export.pairs import earlier_of
from neardup.records import Spans, rfc3339
from neardup.serve.answers import Forgotten, MatchesAnswer, RecordedMatch, Scores, Stored
from neardup.serve.lanes import Deadline
from neardup.serve.problems import UNKNOWN_STORY, Refused
from neardup.serve.story_ids import StoryId, shown


async def story_of(parts: ServiceParts, story_id: StoryId, _: Deadline) -> Stored:
    """GET /v1/stories/{id}.  Raises Refused if there is no such story."""
    found = await parts.reader.do(similarities.of_story, story_id.number)
    if found is None:
        raise _unknown(story_id)
    return Stored(
        story_id=shown(found.story_id, found.name),
        language=found.language,
        title=found.title,
        author_id=found.author_id,
        path=found.path,
        published_at=rfc3339(found.published_at),
        words=found.words,
        copied_words=found.copied_words,
        similarity=found.similarity,
    )


async def matches_of(parts: ServiceParts, story_id: StoryId, _: Deadline) -> MatchesAnswer:
    """GET /v1/stories/{id}/matches.  Raises Refused if there is no such story."""
    same_author = parts.config.detection.same_author == "keep"
    matches = await parts.reader.do(_matches, story_id, same_author=same_author)
    return MatchesAnswer(story_id=story_id.shown, matches=matches)


async def forget(parts: ServiceParts, story_id: StoryId, _: Deadline) -> Forgotten:
    """DELETE /v1/stories/{id}."""
    return Forgotten(story_id=story_id.shown, forgotten=await parts.submissions.forget(story_id.number))


def _unknown(story_id: StoryId) -> Refused:
    return Refused(UNKNOWN_STORY, f"story {story_id.shown} is not on record")


def _matches(db: sqlite3.Connection, story_id: StoryId, *, same_author: bool) -> list[RecordedMatch]:
    with snapshot(db):
        if story_id.number not in stories.describe(db, [story_id.number]):
            raise _unknown(story_id)
        copied = similarities.spans_of_flags(db, story_id.number)
        rows = flags.select(db, Selection(statuses=JOINING, story=story_id.number, same_author=same_author))
        return [_match(dict(row), story_id.number, *copied[row["flag_id"]]) for row in rows]


def _match(row: Mapping[str, Any], story_id: int, own: Spans, other: Spans) -> RecordedMatch:
    """The row of a pair in the view `pairs`, as a match of one of its stories."""
    is_later = row["story_id"] == story_id
    side = "matched" if is_later else "story"
    containments = row["containment"], row["matched_containment"]
    earlier = earlier_of(row)
    return RecordedMatch(
        story_id=shown(row[f"{side}_id"], row[f"{side}_name"]),
        title=row[f"{side}_title"],
        author_id=row[f"{side}_author_id"],
        path=row[f"{side}_path"],
        published_at=rfc3339(row[f"{side}_published_at"]),
        catalogue=row["catalogue"] if is_later else None,
        kind=row["kind"],
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
