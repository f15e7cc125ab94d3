"""Stories: what a batch writes of them, how they are forgotten and removed, and what outlives their rows.

A batch is one transaction: it writes versions of stories with their passage hashes, marks, dead letters and candidates,
and the changes that indexes are to apply.  So every index can be brought up to date from the ledger, whenever it or the
daemon died.  A new text gives its story a number that was never used before (neardup.ledger.outbox) and withdraws the
flags of the old text; verdicts stay, in case a pair is flagged again.

Two things outlive the row of a story: since when neardup has known it, by its own clock, through edits, removal of the
text and refingerprinting; and that it was forgotten on request, after which no listing brings it back.

A work of the reference is a story with a negative id.  Which catalogue lists it, and by which licence, is known also
while it has no fingerprint, because its page is empty or all fingerprints are being made again.
"""

import json
import sqlite3
from collections.abc import Collection, Iterable, Sequence
from itertools import chain, islice
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from neardup.errors import Forgotten
from neardup.ledger import (
    AMONG,
    candidates,
    complaints,
    dead_letters,
    dump_list,
    first_seen,
    languages,
    marks,
    now_ms,
    outbox,
    passages,
    permissions,
    removed_texts,
    serials,
    similarities,
    story_rows,
    transaction,
    verdicts,
    verification,
    versions,
    webhook_events,
)
from neardup.ledger.passages import NONE_FOUND, FoundCommon, forget_examples
from neardup.ledger.runs import get, put, put_checkpoint
from neardup.ledger.story_rows import pack_etag, pack_id, unpack_etag
from neardup.records import BandedFingerprint, Checkpoint, ListedRow, Skip, Skipped, StoredVersion, Story

if TYPE_CHECKING:
    from neardup.core.columns import FingerprintedStories, Outcomes


# The page no longer holds a story, so its fingerprint is removed.  A missing or oversized object says nothing about
# the text.
TEXT_IS_GONE = {Skip.EMPTY, Skip.NOT_TEXT, Skip.NO_BODY, Skip.TOO_SHORT}
# Each step of a statement releases the interpreter lock, and beside a busy event loop waits to get it back.
ROWS_A_STATEMENT = 64
# The tables that `remove_all` empties: everything that follows from fingerprints but flags and verdicts.
OF_FINGERPRINTS = (
    "stories",
    "changes",
    "candidates",
    "suppressed_pairs",
    "crowded_stories",
    "passage_hashes",
    "common_passages",
    "similarities",
    "due_similarities",
    "unsettled",
    "marks",
    "chapter_pairs",
    "chapters",
    "due_pairs",
)


class Batch(Struct, frozen=True):
    """What one transaction writes: outcomes of distinct stories, their matches, and the run's counts and checkpoint.

    `common` are the common passages that the lookups found.
    """

    outcomes: "Outcomes"
    matches: Sequence[candidates.Matches]
    run_id: int
    counts: dict[str, object]
    checkpoint: Checkpoint | None
    common: FoundCommon = NONE_FOUND


def commit(db: sqlite3.Connection, batch: Batch) -> list[int]:
    """Write one batch in one transaction; returns how many matches of each story were left out."""
    with transaction(db):
        outcomes = _leave_out_forgotten(db, batch.outcomes)
        made, skipped = outcomes.made, [outcome for outcome in outcomes.others if isinstance(outcome, Skipped)]
        gone = [outcome.story.id for outcome in skipped if outcome.reason in TEXT_IS_GONE]
        outdated = _list_outdated(db, batch.matches, [*made.stories.ids, *gone])
        _remove(db, gone)
        update(db, [outcome for outcome in skipped if outcome.reason is Skip.UNCHANGED])
        put_versions(db, made)
        marks.put(db, made, skipped)
        dead_letters.settle(db, outcomes)
        left_out = [candidates.nominate(db, matches) for matches in batch.matches]
        candidates.request_selection(db, outdated)
        verification.put_common(db, batch.common)
        similarities.refresh(db)
        db.execute("UPDATE runs SET counts = ? WHERE run_id = ?", (json.dumps(batch.counts), batch.run_id))
        if batch.checkpoint is not None:
            put_checkpoint(db, batch.checkpoint)
    return left_out


def _list_outdated(
    db: sqlite3.Connection, nominated: Iterable[candidates.Matches], changing: Collection[int]
) -> list[int]:
    """The stories with too many matches, of which a kept one changes in this batch: it was kept for its old text."""
    cut = [matches for matches in nominated if matches.left_out]
    former = versions.find_known_ids(db, changing) if cut else set[int]()
    return [matches.story_id for matches in cut if not former.isdisjoint((*matches.ids, *matches.by_passages))]


def _leave_out_forgotten(db: sqlite3.Connection, outcomes: "Outcomes") -> "Outcomes":
    """The outcomes but those of stories that were forgotten while their pages were read."""
    made, others = outcomes.made, outcomes.others
    ids_of_others = [_get_story_id(outcome.story) for outcome in others]
    gone = find_forgotten(db, [*made.stories.ids, *(story_id for story_id in ids_of_others if story_id is not None)])
    if not gone:
        return outcomes
    dead_letters.end_interruptions(db, gone)
    rows = [n for n, story_id in enumerate(made.stories.ids) if story_id not in gone]
    left = [outcome for outcome, story_id in zip(others, ids_of_others, strict=True) if story_id not in gone]
    return replace(outcomes, made=made.take(rows), others=left)


def _get_story_id(row: ListedRow) -> int | None:
    """The id of a listed story, also of one in no known language; None for a row that names no story."""
    if isinstance(row, Story):
        return row.id
    return None if row.name is None else int(row.key)


def put_versions(db: sqlite3.Connection, made: "FingerprintedStories") -> None:
    """Write new versions of distinct stories, within the caller's transaction."""
    listed, pages, header = made.stories, made.pages, made.pages.headers
    ids = listed.ids
    now = now_ms()
    first_seen.append(db, ids, pages.text_sha256s, now)
    since = take_known_since(db, ids, now)
    gone = _withdraw(db, ids)
    numbers = outbox.take_numbers(db, len(made))
    numbered = dict(zip(ids, numbers, strict=True))
    outbox.record_removals(db, [(numbered[version.story_id], version) for version in gone])
    passages.put_hashes(db, zip(numbers, pages.passages, strict=True))
    language_number_of = languages.map_numbers(db)
    language_numbers = [language_number_of[language] for language in listed.languages]
    languages.update_counts(db, language_numbers, (version.language for version in gone))
    rows = zip(
        numbers,
        ids,
        language_numbers,
        pages.simhashes,
        pages.signatures,
        pages.text_hashes,
        listed.updated_at,
        map(pack_etag, pages.etags),
        header["words"].tolist(),
        header["shingles"].tolist(),
        listed.published_at,
        map(pack_id, listed.author_ids),
        listed.paths,
        listed.titles,
        made.page_titles,
        listed.names,
        since,
        map(pack_id, listed.series_ids),
        strict=True,
    )
    while batch := list(islice(rows, ROWS_A_STATEMENT)):
        places = ", ".join([f"({', '.join('?' * len(batch[0]))})"] * len(batch))
        # REPLACE: an edited story has another number
        db.execute(f"INSERT OR REPLACE INTO stories VALUES {places}", list(chain.from_iterable(batch)))
    _put_works(db, zip(ids, listed.catalogues, listed.licences, strict=True))


def update(db: sqlite3.Connection, unchanged: Sequence[Skipped]) -> None:
    """Update the metadata of stories with unchanged texts where it differs, within the caller's transaction."""
    db.executemany(
        "UPDATE stories SET path = ?2, author_id = ?3, title = ?4, published_at = ?5, updated_at = ?6,"
        " etag = coalesce(?7, etag), name = ?8, series_id = ?9 WHERE id = ?1 AND"
        " (path, author_id, title, published_at, updated_at, etag, name, series_id)"
        " IS NOT (?2, ?3, ?4, ?5, ?6, coalesce(?7, etag), ?8, ?9)",
        (
            (
                *(s.id, s.path, pack_id(s.author_id), s.title, s.published_at, s.updated_at),
                *(pack_etag(etag), s.name, pack_id(s.series_id)),
            )
            for s, etag in ((outcome.story, outcome.etag) for outcome in unchanged)
        ),
    )
    _put_works(db, ((outcome.story.id, outcome.story.catalogue, outcome.story.licence) for outcome in unchanged))


def forget(db: sqlite3.Connection, story_id: int, *, known_only: bool = False) -> tuple[bool, str | None]:
    """Remove a story from the ledger, and keep listings from bringing it back.

    Returns whether the ledger held anything of it, and the path of its page.

    With `known_only`, nothing is recorded of one that the ledger did not hold.  The id and the SimHash of one that it
    held remain in the changes, by which indexes learn of the removal, until these are pruned.
    """
    with transaction(db):
        row = db.execute("SELECT path FROM stories WHERE id = ?", (story_id,)).fetchone()
        known = _erase(db, [story_id]) > 0
        permissions.forget(db, story_id)
        removed_texts.forget(db, story_id)
        if known or not known_only:
            db.execute("INSERT OR REPLACE INTO forgotten VALUES (?, ?)", (story_id, now_ms()))
    return known, row and row[0]


def erase(db: sqlite3.Connection, ids: Collection[int]) -> None:
    """Remove stories from the ledger, in one transaction; a listing may bring them back."""
    with transaction(db):
        _erase(db, ids)


def _erase(db: sqlite3.Connection, ids: Collection[int]) -> int:
    """Remove stories and all that follows from them; returns how many rows that were."""
    shown = story_rows.read_shown_ids(db, ids)
    removed = _remove(db, list(ids))
    removed += first_seen.forget(db, ids)
    # Before complaints are closed, which is announced: a marked story would be announced by its name.
    removed += marks.remove(db, list(ids))
    for story_id in ids:
        webhook_events.forget(db, story_id, shown[story_id])
    for story_id in ids:
        for table in ("flags", "meaning_flags"):
            removed += db.execute(f"DELETE FROM {table} WHERE a = ?1 OR b = ?1", (story_id,)).rowcount
        verdicts.forget(db, story_id)
        complaints.forget_story(db, story_id, shown[story_id])
        removed += dead_letters.remove_pages(db, story_id)
    removed += dead_letters.remove(db, [str(story_id) for story_id in ids])
    for table in ("known_before", "drafts", "works"):
        removed += db.execute(f"DELETE FROM {table} WHERE story_id {AMONG}", (dump_list(ids),)).rowcount
    similarities.refresh(db)
    return removed


def _remove(db: sqlite3.Connection, ids: Sequence[int]) -> int:
    """Remove stories; returns how many there were."""
    removed_texts.remember(db, ids, now_ms())
    db.execute(f"INSERT INTO known_before SELECT id, known_since FROM stories WHERE id {AMONG}", (dump_list(ids),))
    gone = _withdraw(db, ids)
    outbox.record_removals(db, list(zip(outbox.take_numbers(db, len(gone)), gone, strict=True)))
    languages.update_counts(db, (), (version.language for version in gone))
    db.executemany("DELETE FROM stories WHERE number = ?", ((version.number,) for version in gone))
    keys = [(version.story_id,) for version in gone]
    db.executemany("DELETE FROM chapters WHERE story_id = ?", keys)
    db.executemany("UPDATE flags SET language = NULL WHERE a = ?1 OR b = ?1", keys)
    return len(gone)


def _withdraw(db: sqlite3.Connection, ids: Sequence[int]) -> list[outbox.Version]:
    """Withdraw the pairs of stories whose texts are about to change or go; returns the present versions.

    Verdicts stay, in case a pair is flagged again.
    """
    gone = [
        outbox.Version(*row)
        for row in db.execute(f"SELECT number, id, language, simhash FROM stories WHERE id {AMONG}", (dump_list(ids),))
    ]
    keys = [(version.story_id,) for version in gone]
    for version in gone:
        candidates.leave_crowds(db, version.story_id)
    if gone:
        serials.note_gone(db, [version.story_id for version in gone])
    for table in ("candidates", "suppressed_pairs"):
        db.executemany(f"DELETE FROM {table} WHERE a = ?1 OR b = ?1", keys)
    db.executemany("UPDATE flags SET status = 'withdrawn' WHERE a = ?1 OR b = ?1", keys)
    passages.remove_hashes(db, [version.number for version in gone])
    passages.note_gone(db, len(gone))
    forget_examples(db, [version.story_id for version in gone])
    return gone


def remove_all(db: sqlite3.Connection, version: str, extraction: str) -> None:
    """Remove all fingerprints, so that a backfill computes them again, as `version`, by `extraction`.

    Flags stay on record, withdrawn until their pairs are verified again; verdicts stay as they are.
    """
    with transaction(db):
        db.execute("UPDATE flags SET status = 'withdrawn', language = NULL")
        db.execute("INSERT INTO known_before SELECT id, known_since FROM stories")
        for table in OF_FINGERPRINTS:
            db.execute(f"DELETE FROM {table}")
        passages.note_common_change(db)
        db.execute("UPDATE languages SET stories = 0")
        db.execute("DELETE FROM meta WHERE key IN ('checkpoint', 'watermark')")
        if get(db, "fingerprint_version") != version:
            db.execute("DELETE FROM removed_texts")  # texts that nothing can be compared with any more
        put(db, "fingerprint_version", version)
        put(db, "refingerprinting", f"{version} {extraction}")
        outbox.take_numbers(db, 1)  # a number without a change: an index that was not cleared is recognised as behind
        outbox.prune_changes(db, 0)


def take_known_since(db: sqlite3.Connection, ids: Sequence[int], now: int) -> list[int]:
    """Since when each of these stories is known; `now` for a story that is new.  Within the caller's transaction."""
    wanted = (dump_list(ids),)
    held = db.execute(f"SELECT id, known_since FROM stories WHERE id {AMONG}", wanted)
    since = dict.fromkeys(ids, now) | dict(held)
    kept = db.execute(f"DELETE FROM known_before WHERE story_id {AMONG} RETURNING story_id, known_since", wanted)
    since |= dict(kept)
    return [since[story_id] for story_id in ids]


def undo_forget(db: sqlite3.Connection, story_id: int) -> bool:
    """Let listings bring a story back; returns whether it was forgotten."""
    return db.execute("DELETE FROM forgotten WHERE story_id = ?", (story_id,)).rowcount > 0


def find_forgotten(db: sqlite3.Connection, ids: Iterable[int]) -> set[int]:
    """Which of these stories are forgotten."""
    rows = db.execute(f"SELECT story_id FROM forgotten WHERE story_id {AMONG}", (dump_list(ids),))
    return {row[0] for row in rows}


def refuse_forgotten(db: sqlite3.Connection, story_id: int) -> None:
    """Raise Forgotten for a story that is forgotten."""
    if find_forgotten(db, [story_id]):
        raise Forgotten(f"story {story_id} was forgotten on request")


def count_forgotten(db: sqlite3.Connection) -> int:
    """The number of forgotten stories."""
    return int(db.execute("SELECT count(*) FROM forgotten").fetchone()[0])


def read_stored_versions(db: sqlite3.Connection, ids: Iterable[int]) -> dict[int, StoredVersion]:
    """The known stories among these ids."""
    rows = db.execute(
        f"SELECT id, language, text_hash, etag, updated_at, name, number, path FROM stories WHERE id {AMONG}",
        (dump_list(ids),),
    )
    name_of = languages.map_names(db)
    return {
        story_id: StoredVersion(name_of[language], text_hash, unpack_etag(etag), updated_at, name, number, path)
        for story_id, language, text_hash, etag, updated_at, name, number, path in rows
    }


def list_unlisted_pages(db: sqlite3.Connection, listed: Collection[int], last_change: int) -> list[int]:
    """The stories that a folder once listed, each named by its path, and that are not among those `listed`.

    `last_change` is the ledger's before the folder was read: pages that were stored since may have been overlooked.
    Also those that are in the dead letters alone.
    """
    rows = db.execute(
        "SELECT id FROM stories WHERE id >= 0 AND name = path AND number <= ?"
        " UNION SELECT CAST(key AS INTEGER) FROM dead_letters WHERE key GLOB '[0-9]*' AND key NOT GLOB '*[^0-9]*'"
        " AND (story IS NULL OR story ->> 'name' = story ->> 'path')",
        (last_change,),
    )
    return [story_id for (story_id,) in rows if story_id not in listed]


def read_fingerprints(db: sqlite3.Connection, ids: Iterable[int]) -> dict[int, BandedFingerprint]:
    """The fingerprints of the known stories among these ids."""
    rows = db.execute(f"SELECT id, language, simhash, signature FROM stories WHERE id {AMONG}", (dump_list(ids),))
    name_of = languages.map_names(db)
    return {story_id: BandedFingerprint(name_of[language], *hashes) for story_id, language, *hashes in rows}


def list_example_ids(db: sqlite3.Connection, *, of_reference: bool) -> list[int]:
    """The id of one story of the platform, or of one work; none if there is none on record."""
    return [row[0] for row in db.execute(f"SELECT id FROM stories WHERE id {'<' if of_reference else '>='} 0 LIMIT 1")]


# The works of the reference.


class Catalogue(Struct, frozen=True):
    """A catalogue: its works, how many of them are not fingerprinted, and the open flags of copies of its works."""

    name: str
    licences: tuple[str, ...]
    works: int
    without_fingerprint: int
    open_flags: int


def _put_works(db: sqlite3.Connection, listed: Iterable[tuple[int, str | None, str | None]]) -> None:
    """Record the works among stories, of which id, catalogue and licence are given, in the caller's transaction."""
    rows = [row for row in listed if row[1] is not None]
    if rows:
        db.executemany(
            "INSERT INTO works VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET licence = excluded.licence"
            " WHERE licence IS NOT excluded.licence",
            rows,
        )


def list_catalogues(db: sqlite3.Connection) -> list[Catalogue]:
    """All catalogues on record, by name."""
    copies = count_open_flags_of_works(db)
    rows = db.execute(
        "SELECT catalogue, json_group_array(DISTINCT licence) FILTER (WHERE licence IS NOT NULL), count(*),"
        " sum(id IS NULL) FROM works LEFT JOIN stories ON id = story_id GROUP BY catalogue ORDER BY catalogue"
    )
    return [
        Catalogue(name, tuple(sorted(json.loads(licences))), works, lacking, copies.get(name, 0))
        for name, licences, works, lacking in rows
    ]


def count_works(db: sqlite3.Connection) -> int:
    """The number of works."""
    return int(db.execute("SELECT count(*) FROM works").fetchone()[0])


def count_works_by_catalogue(db: sqlite3.Connection) -> dict[str, int]:
    """Catalogue -> its number of works."""
    return dict(db.execute("SELECT catalogue, count(*) FROM works GROUP BY catalogue ORDER BY catalogue").fetchall())


def count_open_flags_of_works(db: sqlite3.Connection, since: int = 0) -> dict[str, int]:
    """Catalogue -> the open flags of copies of its works, of those flagged at or after a time in milliseconds.

    Flags between stories of one author that `detection.same_author = "hide"` leaves out do not count.
    """
    rows = db.execute(
        "SELECT catalogue, count(*) FROM flags JOIN works ON story_id = a"
        " WHERE a < 0 AND +status = 'open' AND NOT same_author AND flagged_at >= ? GROUP BY catalogue",
        (since,),
    )
    return dict(rows.fetchall())


def list_unlisted_works(db: sqlite3.Connection, listed: Collection[int]) -> list[int]:
    """The works that are not among those listed."""
    return [story_id for (story_id,) in db.execute("SELECT story_id FROM works") if story_id not in listed]


def list_works(db: sqlite3.Connection, catalogue: str) -> list[int]:
    """The works of a catalogue."""
    return [row[0] for row in db.execute("SELECT story_id FROM works WHERE catalogue = ?", (catalogue,))]
