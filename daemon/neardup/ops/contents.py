"""What is kept beside the ledger, as `neardup doctor` and `neardup status` show it, also beside a run.

The passage index, the works of the reference, and the pages of submitted stories.
"""

import asyncio
import sqlite3
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from neardup.config import Reference
from neardup.index.passages.folder import SegmentFile, list_segments, open_segment
from neardup.index.passages.postings import join_ranges
from neardup.ledger import Ledger, files, passages, runs, stories, submissions, works
from neardup.pipeline import submitted_pages
from neardup.records import format_count

if TYPE_CHECKING:
    from neardup.index.passages.index import PassageIndex


PASSAGE_REPAIR = "the next run reads their pages again, or `neardup reindex` now"
MOST_NAMED = 3  # damaged segments, in a message
EXAMPLES = 5  # common passages, in a status
SYNC = "run `neardup reference sync`"


class PassageStatus(Struct, frozen=True):
    """What the passage index holds.

    `stories` are those in segments, with former versions that no merge has dropped yet; `waiting` those that are in the
    ledger's outbox; `missing` those whose pages are to be read again, counted to 1,000,000.  `common` counts the common
    passages by language; `examples` has those that the most stories hold, each with a story that holds it.
    """

    stories: int
    segments: int
    bytes: int
    waiting: int
    missing: int
    common: dict[str, int]
    examples: list[dict[str, Any]]


def read_passage_status(db: sqlite3.Connection, ledger: Path) -> PassageStatus:
    """The state of the passage index beside a ledger.  Raises Fatal for that of another ledger."""
    folder, recorded = files.name_passages_folder(ledger), runs.get(db, "fingerprint_version")
    segments = _list_segments(folder, runs.get(db, "ledger_id") or "", recorded.split()[0]) if recorded else []
    return PassageStatus(
        stories=sum(file.segment.header.stories for file in segments if file.segment),
        segments=len(segments),
        bytes=sum(file.path.stat().st_size for file in segments),
        waiting=passages.count_unflushed(db),
        missing=passages.count_missing(db, join_ranges((file.first, file.last) for file in segments)),
        common=passages.count_common(db),
        examples=[
            {key: row[key] for key in ("language", "holders", "example", "example_title")}
            for row in passages.list_common(db, EXAMPLES)
        ],
    )


def _list_segments(folder: Path, ledger_id: str, algorithm: str) -> list[SegmentFile]:
    """The segments in a folder, as `PassageIndex` opens them; listed again if another process merges some meanwhile."""
    while True:
        with suppress(FileNotFoundError):
            return [open_segment(file, ledger_id, algorithm) for file in list_segments(folder)]


async def find_passage_fault(index: "PassageIndex", ledger: Ledger) -> str | None:
    """What is damaged or missing, and what to do, in one line; None if every checksum is right and nothing is missing.

    Reads every segment.
    """
    if damaged := await asyncio.to_thread(lambda: list(index.check())):
        names = ", ".join(f"{damage.segment} ({damage.reason})" for damage in damaged[:MOST_NAMED])
        stories = format_count(sum(damage.last - damage.first + 1 for damage in damaged), "story", "stories")
        segments = format_count(len(damaged), "damaged segment", "damaged segments")
        return f"{segments} with up to {stories}: {names}; {PASSAGE_REPAIR}"
    held = await asyncio.to_thread(lambda: index.held)
    missing = await ledger.do(passages.count_missing, held)
    return f"lacks {format_count(missing, 'story', 'stories')}; {PASSAGE_REPAIR}" if missing else None


async def summarise_passages(index: "PassageIndex") -> str:
    """What an undamaged index holds, in one line."""
    segments, size = await asyncio.to_thread(lambda: (len(index.list_files()), index.measure_size()))
    held, parts = format_count(index.stories, "story", "stories"), format_count(segments, "segment", "segments")
    return f"{held} in {parts} of {size:,} bytes, every checksum is right"


def find_reference_fault(db: sqlite3.Connection, reference: Reference | None) -> str | None:
    """What is wrong with the works on record, and how to mend it; None if nothing is."""
    if reference is None:
        return explain_missing_section(works.count(db))
    if (sync := runs.read_last_of_command(db, "reference")) is None:
        return f"the works were never listed: {SYNC}"
    if sync["status"] != "done":
        why = f" ({sync['error']})" if sync["error"] else ""
        return f"the last sync is on record as {sync['status']}{why}: {SYNC}"
    if reference.kind == "manifest" and _read_changed_at(reference) > sync["started_at"]:
        return f"{reference.manifest} has changed since the last sync: {SYNC}"
    if lacking := sum(catalogue.without_fingerprint for catalogue in works.list_catalogues(db)):
        without = format_count(lacking, "work has no fingerprint", "works have no fingerprint")
        return f"{without}: {SYNC}, which says why"
    return None


def explain_missing_section(count: int) -> str | None:
    """What follows if so many works are on record, but no [reference] is configured; None if there are none."""
    if not count:
        return None
    on_record = format_count(count, "work is", "works are")
    return (
        f"{on_record} on record, but the configuration has no [reference]: their pages cannot be read, so new"
        " copies that changed a word are only estimated, and copied passages are not found; put [reference] back, or"
        " run `neardup reference remove NAME`"
    )


def _read_changed_at(reference: Reference) -> int:
    """When the list of works was last written, in milliseconds since 1970."""
    assert reference.manifest is not None
    return reference.manifest.stat().st_mtime_ns // 1_000_000


class SubmissionStatus(Struct, frozen=True):
    """The submitted pages on disk, the submitted stories still to be looked up once more, and the forgotten stories."""

    pages: int
    unsettled: int
    forgotten: int


def read_submission_status(db: sqlite3.Connection, ledger: Path) -> SubmissionStatus:
    return SubmissionStatus(
        len(submitted_pages.list_files(ledger)), submissions.count_unsettled(db), stories.count_forgotten(db)
    )


def find_submission_fault(db: sqlite3.Connection, ledger: Path) -> str | None:
    """The stories whose submitted page is gone, and what to do, in one line; None if there are none."""
    missing = [name or str(story_id) for story_id, name in submitted_pages.list_missing(db, ledger)]
    if not missing:
        return None
    named = ", ".join(missing[:MOST_NAMED]) + (", and others" if len(missing) > MOST_NAMED else "")
    lost = format_count(len(missing), "story has lost its page", "stories have lost their page")
    return f"{lost}: {named}; submit each again, or list it with a path"


def summarise_submissions(db: sqlite3.Connection, ledger: Path) -> str:
    """The pages on disk in one line, for `doctor`."""
    unused = sum(1 for _ in submitted_pages.list_unused(db, ledger))
    pages = format_count(
        len(submitted_pages.list_files(ledger)), "page of a submitted story", "pages of submitted stories"
    )
    return f"{pages}, {format_count(unused, 'file', 'files')} that no story needs"
