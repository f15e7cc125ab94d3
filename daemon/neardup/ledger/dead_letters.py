"""Dead letters: the stories and rows that could not be processed, and the stories whose page was missing.

A story has one dead letter at most, which counts its attempts and goes once the story has any other outcome.  A further
page that a listing has under its id has one of its own, which goes once that page is the story's.  Also the
interrupted stories: those that were in flight when the daemon died, and have had no outcome since.
"""

import json
import sqlite3
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import asdict

from neardup.errors import Misuse
from neardup.ledger import AMONG, dump_list, join_conditions, list_conditions, now_ms, select_named_rows, transaction
from neardup.ledger.runs import get, put
from neardup.records import Dead, DeadLettered, Language, ListedRow, Outcome, Skip, Skipped, Story, show_id

if TYPE_CHECKING:
    from neardup.core.columns import Outcomes


PAGE = 256
PAGE_OF = "="  # between the id and the path in the key of a further page


class DeadLetterFilter(Struct, frozen=True):
    """A selection of dead letters: by reason, by keys, or all."""

    reason: str | None = None
    keys: Sequence[str] = ()

    @property
    def condition(self) -> tuple[str, list[object]]:
        """The selection as an SQL condition, with its values."""
        keys = dump_list(self.keys) if self.keys else None
        return join_conditions(list_conditions((("reason = ?", self.reason), (f"key {AMONG}", keys))))


ALL = DeadLetterFilter()


def settle(db: sqlite3.Connection, outcomes: "Outcomes") -> None:
    """Record the dead letters among outcomes, remove those of stories that recovered; none is interrupted any more.

    A missing page counts as skipped, but may appear later, so its story becomes a dead letter too.
    """
    made, others = outcomes.made.stories.ids, outcomes.others
    dead_letters = [(_make_key(outcome), *fields) for outcome in others if (fields := _describe_outcome(outcome))]
    settled = [outcome.story for outcome in others if isinstance(outcome, Skipped) and outcome.reason != Skip.MISSING]
    remove(db, map(str, [*made, *(story.id for story in settled)]))
    remove(db, map(_make_page_key, made, outcomes.made.stories.paths))
    remove(db, (_make_page_key(story.id, story.path) for story in settled))
    db.executemany(
        "INSERT INTO dead_letters (key, reason, error, story, first_at, last_at) VALUES (?1, ?2, ?3, ?4, ?5, ?5)"
        " ON CONFLICT (key) DO UPDATE SET reason = ?2, error = ?3, story = ?4, attempts = attempts + 1, last_at = ?5",
        dead_letters,
    )
    end_interruptions(db, outcomes.keys)


def end_interruptions(db: sqlite3.Connection, keys: Iterable[int | str]) -> None:
    """Record that stories are not interrupted any more; other keys are ignored."""
    held = count_interruptions(db)
    if cleared := held.keys() & set(keys):
        _put_interrupted(db, Counter({story_id: n for story_id, n in held.items() if story_id not in cleared}))


def _make_key(outcome: Outcome) -> str:
    story = outcome.story
    if isinstance(story, Story) and isinstance(outcome, DeadLettered) and outcome.reason is Dead.DUPLICATE_ID:
        return _make_page_key(story.id, story.path)
    return story.key


def _make_page_key(story_id: int, path: str | None) -> str:
    return f"{story_id}{PAGE_OF}{path or ''}"


def remove_pages(db: sqlite3.Connection, story_id: int) -> int:
    """Remove the dead letters of further pages under the id of a story; returns their number."""
    return db.execute("DELETE FROM dead_letters WHERE key GLOB ?", (f"{story_id}{PAGE_OF}*",)).rowcount


def _describe_outcome(outcome: Skipped | DeadLettered) -> tuple[str, str, str | None, int] | None:
    """Reason, error, story and time of an outcome that makes a dead letter; None for any other."""
    match outcome:
        case DeadLettered(story=story, reason=reason, error=error):
            return reason, error, _dump_story(story), now_ms()
        case Skipped(story=story, reason=Skip.MISSING):
            return Skip.MISSING, "no such page", _dump_story(story), now_ms()
    return None


def _dump_story(story: ListedRow) -> str | None:
    """A story as it was listed; of a page in no known language only its id and its path."""
    if isinstance(story, Story):
        return json.dumps(asdict(story), ensure_ascii=False)
    if story.name is None:
        return None
    return json.dumps({"id": int(story.key), "path": story.name, "name": story.name}, ensure_ascii=False)


def _load_story(text: str) -> Story:
    """Raises ValueError or TypeError for the record of another version of the program."""
    values = json.loads(text)
    return Story(**(values | {"language": Language(values["language"])}))


def remove(db: sqlite3.Connection, keys: Iterable[str]) -> int:
    """Remove dead letters, within the caller's transaction; returns their number."""
    return db.execute(f"DELETE FROM dead_letters WHERE key {AMONG}", (dump_list(keys),)).rowcount


def remove_catalogue(db: sqlite3.Connection, catalogue: str) -> int:
    """Remove the dead letters of a catalogue; returns their number."""
    return db.execute("DELETE FROM dead_letters WHERE story ->> 'catalogue' = ?", (catalogue,)).rowcount


def drop(db: sqlite3.Connection, choice: DeadLetterFilter) -> int:
    """Remove dead letters that are not to be retried; returns their number."""
    condition, values = choice.condition
    with transaction(db):
        return db.execute(f"DELETE FROM dead_letters WHERE {condition}", values).rowcount


def select(db: sqlite3.Connection, choice: DeadLetterFilter, limit: int = -1) -> list[dict[str, Any]]:
    """Dead letters, the latest first; `story` as it was listed, None for a row that names none.

    A key and the `id` of a story that was listed by a name begin with this name.
    """
    condition, values = choice.condition
    columns = "key, reason, error, attempts, first_at, last_at, story"
    rows = select_named_rows(
        db,
        f"SELECT {columns} FROM dead_letters WHERE {condition} ORDER BY last_at DESC, key LIMIT ?",
        (*values, limit),
    ).fetchall()
    for row in rows:
        if row["story"] is not None:
            story = json.loads(row["story"])
            number, listed = str(story["id"]), show_id(story["id"], story.pop("name"))
            row |= {"key": f"{listed}{row['key'].removeprefix(number)}", "story": story | {"id": listed}}
    return rows


def count_by_reason(db: sqlite3.Connection, choice: DeadLetterFilter = ALL) -> dict[str, int]:
    """The number of dead letters, by reason."""
    condition, values = choice.condition
    rows = db.execute(
        f"SELECT reason, count(*) FROM dead_letters WHERE {condition} GROUP BY reason ORDER BY reason", values
    )
    return dict(rows.fetchall())


def refuse_unknown(db: sqlite3.Connection, keys_of: Mapping[str, Sequence[str]]) -> None:
    """Raises Misuse for a key of no dead letter, or of a row that names no story.

    `keys_of` are the keys that each may be which is shown so.
    """
    for shown, keys in keys_of.items():
        query = f"SELECT story ->> 'language' FROM dead_letters WHERE key {AMONG}"
        spoken = [language for (language,) in db.execute(query, (dump_list(keys),))]
        if not spoken:
            raise Misuse(f"no dead letter {shown}")
        if not any(spoken):
            raise Misuse(f"the dead letter {shown} is a row that names no story: mend the listing, then drop it")


def list_retriable(db: sqlite3.Connection, choice: DeadLetterFilter, after: str) -> list[tuple[str, Story]]:
    """The keys behind this one, ascending, and their stories, some at a time.

    Those that only an operator mends are among them only where their keys or their reason are selected.
    """
    condition, values = choice.condition
    if choice.reason is None and not choice.keys:
        condition = f"reason NOT IN ('{Dead.QUARANTINED}', '{Dead.DUPLICATE_ID}')"
    rows = db.execute(
        f"SELECT key, story FROM dead_letters WHERE {condition} AND story ->> 'language' IS NOT NULL AND key > ?"
        " ORDER BY key LIMIT ?",
        (*values, after, PAGE),
    )
    return [(key, _load_story(text)) for key, text in rows]


def read_quarantined(db: sqlite3.Connection) -> dict[int, Story]:
    """Story ids -> the stories in quarantine, as they were listed."""
    rows = db.execute("SELECT story FROM dead_letters WHERE reason = ?", (Dead.QUARANTINED,))
    return {story.id: story for row in rows for story in [_load_story(row[0])]}


def add_interrupted(db: sqlite3.Connection, ids: Iterable[int]) -> None:
    """Record that these stories were in flight when the daemon died."""
    with transaction(db):
        _put_interrupted(db, count_interruptions(db) + Counter(ids))


def count_interruptions(db: sqlite3.Connection) -> Counter[int]:
    """Story ids -> how often each was in flight when the daemon died."""
    return Counter({int(story_id): n for story_id, n in json.loads(get(db, "interrupted") or "{}").items()})


def _put_interrupted(db: sqlite3.Connection, held: Counter[int]) -> None:
    put(db, "interrupted", json.dumps(held))
