"""What a passage index holds, and what it lacks, for `neardup doctor` and `neardup status`; also beside a run."""

import asyncio
import sqlite3
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from neardup.index.passages.folder import SegmentFile, list_segments, open_segment
from neardup.index.passages.postings import join_ranges
from neardup.ledger import Ledger, common_passages, files, missing_passages, passage_hashes, runs

if TYPE_CHECKING:
    from neardup.index.passages.index import PassageIndex

REPAIR = "the next run reads their pages again, or `neardup reindex` now"
MOST_NAMED = 3  # damaged segments, in a message
EXAMPLES = 5  # common passages, in a status


@dataclass(frozen=True, slots=True)
class PassageStatus:
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


def status(db: sqlite3.Connection, ledger: Path) -> PassageStatus:
    """The state of the passage index beside a ledger.  Raises Fatal for that of another ledger."""
    folder, recorded = files.passages_folder(ledger), runs.get(db, "fingerprint_version")
    segments = _segments(folder, runs.get(db, "ledger_id") or "", recorded.split()[0]) if recorded else []
    return PassageStatus(
        stories=sum(one.segment.header.stories for one in segments if one.segment),
        segments=len(segments),
        bytes=sum(one.path.stat().st_size for one in segments),
        waiting=passage_hashes.count(db),
        missing=missing_passages.count(db, join_ranges((one.first, one.last) for one in segments)),
        common=common_passages.counts(db),
        examples=[
            {key: row[key] for key in ("language", "holders", "example", "example_title")}
            for row in common_passages.listed(db, EXAMPLES)
        ],
    )


def _segments(folder: Path, ledger_id: str, algorithm: str) -> list[SegmentFile]:
    """The segments in a folder, as `PassageIndex` opens them; listed again if another process merges some meanwhile."""
    while True:
        with suppress(FileNotFoundError):
            return [open_segment(one, ledger_id, algorithm) for one in list_segments(folder)]


async def difference(index: "PassageIndex", ledger: Ledger) -> str | None:
    """What is damaged or missing, and what to do, in one line; None if every checksum is right and nothing is missing.

    Reads every segment.
    """
    if damaged := await asyncio.to_thread(lambda: list(index.check())):
        names = ", ".join(f"{one.segment} ({one.reason})" for one in damaged[:MOST_NAMED])
        stories = sum(one.last - one.first + 1 for one in damaged)
        return f"{len(damaged)} damaged segments with up to {stories:,} stories: {names}; {REPAIR}"
    held = await asyncio.to_thread(lambda: index.held)
    missing = await ledger.do(missing_passages.count, held)
    return f"lacks {missing:,} stories; {REPAIR}" if missing else None


async def summary(index: "PassageIndex") -> str:
    """What an undamaged index holds, in one line."""
    segments, size = await asyncio.to_thread(lambda: (len(index.files()), index.size()))
    return f"{index.stories:,} stories in {segments} segments of {size:,} bytes, every checksum is right"
