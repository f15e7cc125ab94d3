"""The checks of `neardup doctor`, one for each part of an installation.

A check returns what it found in a line, or raises what is wrong: NeedsRepair for a part that works but whose data need
a repair, else an error of neardup.  The check of the index writes a probe, a story that does not exist, and looks it
up.
"""

import asyncio
import sqlite3
import unicodedata
from collections.abc import AsyncIterator
from contextlib import aclosing, closing
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np
import xxhash
from msgspec import Struct
from msgspec.structs import replace

from neardup.app import open_index, open_readers
from neardup.config import Config, Reference
from neardup.core.fingerprint import version as fingerprint_version
from neardup.core.languages import LANGUAGES, SHIPPED
from neardup.core.native.page import WHY_UNUSABLE
from neardup.core.page import PageFingerprinted, Unreadable
from neardup.errors import Fatal, Gone, IndexDamaged, NeardupError
from neardup.index.protocol import Index, LookupResult, refuse_index_mismatch
from neardup.ledger import (
    Ledger,
    connect,
    files,
    first_seen,
    lock,
    now_ms,
    outbox,
    passages,
    runs,
    stories,
    story_rows,
    transaction,
    translate_errors,
    versions,
)
from neardup.ledger.first_seen import History
from neardup.ledger.languages import count_by_language
from neardup.meaning import vectors
from neardup.meaning.embedders import probe
from neardup.meaning.vectors import open_parts
from neardup.ops.status import explain_missing_section
from neardup.pages.results import NotModified, ReadFailed
from neardup.pipeline import submitted_pages
from neardup.pipeline.index_check import SAMPLE, compare_counts
from neardup.pipeline.passage_sync import open_passages
from neardup.query.search import open_words
from neardup.records import BandedFingerprint, Change, Language, Skip, Story, format_count, format_time, is_work
from neardup.source import Source, list_rows
from neardup.source.listings import open_reference, open_source
from neardup.source.rows import OF_STORIES, OF_WORKS

if TYPE_CHECKING:
    from neardup.index.passages.index import PassageIndex
    from neardup.source.athena import Athena  # its libraries are optional

PROBE_ID = -1  # no story has this id
PROBE_NUMBER = 0  # no story has this number
PROBE = BandedFingerprint(LANGUAGES[0], bytes(range(16)), bytes(range(64)))
UNSIGNED = replace(PROBE, signature=None)  # the probe as a text with too few shingles for a signature
PASSAGE_REPAIR = "the next run reads their pages again, or `neardup reindex` now"
SYNC = "run `neardup reference sync`"
MOST_NAMED = 3  # damaged segments or stories, in a message
INDEX_REPAIR = "the next run repairs it, or `neardup reindex` now"


class Level(StrEnum):
    """The result of a check: a warning is a part that works, but whose data need a repair."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


class NeedsRepair(NeardupError):
    """A part works, but its data need a repair."""


class CheckResult(Struct, frozen=True):
    """The result of one check; `message` describes the part, or says what to repair."""

    part: str
    level: Level
    message: str

    @property
    def is_good(self) -> bool:
        return self.level is Level.OK


async def examine(config: Config) -> AsyncIterator[CheckResult]:
    """Check the configuration, what is stored, the listings with their object stores, clock and fingerprints."""
    checks = {
        "ledger": _check_ledger,
        "index": _check_index,
        "passages": _check_passages,
        "titles": _check_titles,
        "submitted pages": _check_submitted_pages,
        "proofs": _check_proofs,
        "source": _check_source,
        "object store": _check_store,
        "reference": _check_reference,
        "meaning": _check_meaning,
        "clock": _check_clock,
        "native core": _check_native_core,
        "fingerprints": _check_fingerprints,
    }
    yield CheckResult("config", Level.OK, "every key is known")
    for part, check in checks.items():
        try:
            with translate_errors(config.ledger.path):
                message = await check(config)
            yield CheckResult(part, Level.OK, message)
        except NeedsRepair as warning:
            yield CheckResult(part, Level.WARN, str(warning))
        except NeardupError as error:
            yield CheckResult(part, Level.FAIL, str(error) or type(error).__name__)
        except OSError as error:  # such as of a folder that the user may not enter
            yield CheckResult(part, Level.FAIL, str(error))


async def _check_ledger(config: Config) -> str:
    if config.ledger.path.exists() and not files.is_read_only(config.ledger.path):
        files.refuse_any_damage(config.ledger.path)
    with closing(connect(config.ledger.path)) as db:
        with transaction(db):
            runs.put(db, "doctor", str(now_ms()))
        recorded = runs.get(db, "fingerprint_version")
        current, held = fingerprint_version.version(config.registry), count_by_language(db)
        if recorded is not None and (why := fingerprint_version.explain_difference(recorded, current, held)):
            raise Fatal(f"holds {why}: `neardup backfill --refingerprint` makes them again")
        return f"{config.ledger.path}, {format_count(sum(held.values()), 'story', 'stories')}, writable"


async def _check_proofs(config: Config) -> str:
    """Whether the log of what was seen first is what the runs recorded of it."""
    heads = first_seen.read_heads(config.ledger.path)
    with closing(connect(config.ledger.path)) as db:
        history, entries = first_seen.compare_with_heads(db, heads), first_seen.count_entries(db)
    texts = format_count(entries, "text", "texts")
    if history is History.REWRITTEN:
        raise Fatal(f"the log of {texts} was rewritten: {files.name_heads_file(config.ledger.path)} has another root")
    if history is History.RESTORED:
        raise NeedsRepair(f"the log has {texts} and had {heads[-1].size:,}: the ledger was restored from a copy")
    return f"{texts}, with the roots that the runs recorded"


async def _check_index(config: Config) -> str:
    connect(config.ledger.path).close()  # refuses a damaged file, which may hold the SQLite index
    index = await open_index(config)
    try:
        await _refuse_mismatch(config, index)
        await _write_and_find_probe(index)
        if problem := await index.find_problem():
            raise Fatal(problem)
        with closing(Ledger(config.ledger.path)) as ledger:
            difference = await _find_index_difference(index, ledger)
        count = format_count(sum((await index.count_stories()).values()), "story", "stories")
    except IndexDamaged as error:
        raise NeedsRepair(f"{error}; {INDEX_REPAIR}") from error
    finally:
        await index.close()
    if difference is not None:
        raise NeedsRepair(difference)
    return f"{count}; a probe was written and found"


async def _refuse_mismatch(config: Config, index: Index) -> None:
    with closing(connect(config.ledger.path)) as db:
        current, held = fingerprint_version.version(config.registry), count_by_language(db)
        refuse_index_mismatch(await index.read_position(), runs.get(db, "ledger_id") or "", current, held)


async def _write_and_find_probe(index: Index) -> None:
    """Write a probe and find it; raises Fatal if it is not found.

    Packed buckets, which hold story numbers, never lose a number.  So the probe is written only to those that do not
    hold its number from an earlier call: otherwise each call would make them longer.
    """
    await index.check_writable()
    by_simhash, by_both = await _look_up_probe(index)
    if PROBE_NUMBER in by_simhash.numbers:
        return
    probe = UNSIGNED if PROBE_NUMBER in by_both.numbers else PROBE
    await index.apply([Change(0, PROBE_ID, None, probe, PROBE_NUMBER)], None)
    try:
        by_simhash, by_both = await _look_up_probe(index)
    finally:
        await index.apply([Change(0, PROBE_ID, probe, None)], None)
    simhash_found = PROBE_ID in by_simhash.ids or PROBE_NUMBER in by_simhash.numbers
    if not simhash_found or PROBE_NUMBER not in by_both.numbers:
        raise Fatal("a probe was written and not found")


async def _look_up_probe(index: Index) -> tuple[LookupResult, LookupResult]:
    """Look the probe up by its SimHash alone, and by SimHash and signature."""
    _, [by_simhash, by_both] = await index.look_up([UNSIGNED, PROBE])
    return by_simhash, by_both


async def _check_passages(config: Config) -> str:
    with closing(Ledger(config.ledger.path)) as ledger, closing(await open_passages(ledger)) as passages:
        if (difference := await find_passage_fault(passages, ledger)) is not None:
            raise NeedsRepair(difference)
        return await summarise_passages(passages)


async def _check_titles(config: Config) -> str:
    path = files.name_titles_file(config.ledger.path)
    if not path.exists():
        return "no index of titles: `neardup review` makes it"
    with closing(open_words(config.ledger.path, path)) as index, closing(connect(config.ledger.path)) as db:
        is_complete = index.read_position() == versions.read_title_position(db)
    return f"{path}, {'complete' if is_complete else 'behind: `neardup review` reads the new titles while it is open'}"


async def _check_submitted_pages(config: Config) -> str:
    with closing(connect(config.ledger.path)) as db:
        if (difference := find_submission_fault(db, config.ledger.path)) is not None:
            raise NeedsRepair(difference)
        return summarise_submissions(db, config.ledger.path)


async def _check_meaning(config: Config) -> str:
    if config.meaning is None:
        return "off: no [meaning]"
    async with open_parts(config) as parts:
        held = sum((await parts.vectors.do(vectors.count_stories)).values())
        waiting = await parts.vectors.do(vectors.count_waiting)
        size = len(await probe(parts.embedder))
    stories = format_count(held, "story has vectors", "stories have vectors")
    return f"{parts.embedder.model}, {size} dimensions; {stories}, {format_count(waiting, 'waits', 'wait')}"


async def _check_clock(config: Config) -> str:
    with closing(connect(config.ledger.path)) as db:
        for run in runs.list_latest(db, 1):
            if run["started_at"] > now_ms():
                began = format_time(run["started_at"])
                raise Fatal(f"the last run began at {began}, in the future: the clock was set back")
        return str(format_time(now_ms()))


async def _check_native_core(_: Config) -> str:
    if WHY_UNUSABLE is not None:
        raise NeedsRepair(f"{WHY_UNUSABLE}; the reference in Python runs, which is slower")
    return "built for this machine"


async def _check_fingerprints(config: Config) -> str:
    if changed := fingerprint_version.list_changed():
        raise Fatal(
            f"the fingerprints of {', '.join(changed)} differ from those of this release (numpy {np.__version__}, "
            f"xxhash {xxhash.VERSION}, Unicode {unicodedata.unidata_version}): install the versions of the lock file"
        )
    return f"version {fingerprint_version.algorithm()}, {len(SHIPPED)} golden texts have their pinned fingerprints"


# The listings of stories and of works, and the pages that they name


async def _check_source(config: Config) -> str:
    """Read the first row of [source], or the columns of its query; what they are."""
    source = open_source(config)
    if config.source.kind == "athena":
        return await _check_columns(source, OF_STORIES.required, "backfill_sql")
    story = await _find_first_listed(source)
    listed = config.content.url if config.source.kind == "folder" else config.source.manifest
    return f"{listed}, with stories such as {story.shown}" if story else "lists no story"


async def _check_store(config: Config) -> str:
    """Read the page of one story; what it is."""
    is_listed = config.source.kind in {"manifest", "folder"}
    known = await _find_first_listed(open_source(config)) if is_listed else _find_on_record(config)
    try:
        return await _read_page(config, known or Story(0, LANGUAGES[0]))
    except Gone:
        if known is not None:
            raise
        return "the store answers; no story is known yet, so no page was read"


async def _check_reference(config: Config) -> str:
    """Read the first row of [reference] and the page of one work, and compare the works on record with the last sync.

    Raises NeedsRepair if works are on record that are not as the listing says, or that no [reference] lists.
    """
    reference, found, known = config.reference, "no [reference]", None
    if reference is not None:
        listing = open_reference(config)
        if reference.kind == "athena":
            found = await _check_columns(listing, OF_WORKS.required, "reference.sql")
            known = _find_on_record(config, of_reference=True)
        else:
            found, known = str(reference.manifest), await _find_first_listed(listing)
    if known is not None:
        found += f", {await _read_page(config, known)}"
    with closing(connect(config.ledger.path)) as db:
        if (difference := find_reference_fault(db, reference)) is not None:
            raise NeedsRepair(difference)
        return f"{found}, {format_count(stories.count_works(db), 'work', 'works')} on record"


async def _check_columns(source: Source, required: tuple[str, ...], query: str) -> str:
    columns = await cast("Athena", source).read_columns()
    missing = [column for column in required if column not in columns]
    if missing:
        raise Fatal(f"{query} lists no column {' and no column '.join(missing)}")
    return f"Athena lists the columns {', '.join(columns)}"


async def _read_page(config: Config, story: Story) -> str:
    """What the page of a story is.  Raises Gone if the store has none, Fatal."""
    async with aclosing(open_readers(config)) as pool:
        path, result = pool.find_location(story), await pool.read(story, None)
    match result:
        case PageFingerprinted(fingerprint, _, size):
            return f"{path}, {size} bytes, a {'work' if is_work(story.id) else 'story'} of {fingerprint.words} words"
        case Unreadable(Skip.MISSING):
            raise Gone(f"the store answers, but has no object {path}")
        case Unreadable(reason):
            raise Fatal(f"{path}: {reason}; is {'reference.' if is_work(story.id) else ''}extract.body right?")
        case ReadFailed(error=error):
            raise Fatal(error)
        case NotModified():
            raise AssertionError("without an ETag a page is always read")


async def _find_first_listed(source: Source) -> Story | None:
    async with aclosing(list_rows(source)) as listing:  # type: ignore[type-var]
        async for story in listing:
            if isinstance(story, Story):
                return story
    return None


def _find_on_record(config: Config, *, of_reference: bool = False) -> Story | None:
    """A story of the platform that is on record, or a work."""
    with closing(connect(config.ledger.path)) as db:
        for row in story_rows.describe(db, stories.list_example_ids(db, of_reference=of_reference)).values():
            return Story(row["id"], Language(row["language"]), row["path"], name=row["name"])
    return None


# What an index holds, beside what the ledger expects; also while a run writes


async def _find_index_difference(index: Index, ledger: Ledger) -> str | None:
    """What the index lacks or has too much, and what to do, in one line; None if it holds what it should.

    Raises Transient, and IndexDamaged for an index that only a rebuild repairs.
    """
    held = await ledger.do(count_by_language)
    applied, last = (await index.read_position()).applied, await ledger.do(outbox.read_last_seq)
    if not held:
        return None
    if (behind := _describe_lag(applied, last, lock.read_holder(ledger.path) is not None)) is not None:
        return behind
    assert applied is not None
    if (lacks := await _find_lacking(index, ledger, applied)) is not None:
        return lacks
    return await _find_miscounts(index, ledger, applied)


def _describe_lag(applied: int | None, last: int, running: bool) -> str | None:
    if applied is None:
        why = "a command is filling it" if running else f"it has lost data, or was never filled; {INDEX_REPAIR}"
        return f"not in step with the ledger: {why}"
    if applied > last:
        return f"at change {applied:,}, which the ledger, at {last:,}, never made; {INDEX_REPAIR}"
    if applied < last and not running:
        return f"lacks the last {format_count(last - applied, 'change', 'changes')} of the ledger; {INDEX_REPAIR}"
    return None


async def _find_lacking(index: Index, ledger: Ledger, applied: int) -> str | None:
    """What the index lacks of sampled stories that it had applied, and that no run has edited meanwhile."""
    sample = [story for story in await ledger.do(versions.sample_inserts, SAMPLE) if story.number <= applied]
    missing = {story.number: n for story, n in zip(sample, await index.count_missing(sample), strict=True) if n}
    existing = await ledger.do(versions.find_existing_numbers, missing)
    lost = [n for number, n in missing.items() if number in existing]
    if not lost:
        return None
    entries = format_count(sum(lost), "entry", "entries")
    return f"lacks {entries} of {len(lost):,} of {len(sample):,} sampled stories; {INDEX_REPAIR}"


async def _find_miscounts(index: Index, ledger: Ledger, applied: int) -> str | None:
    """The languages whose stories the index miscounts; a run that writes meanwhile hides a difference."""
    counted = {str(language): n for language, n in (await index.count_stories()).items()}
    held = await ledger.do(count_by_language)
    if {applied} != {(await index.read_position()).applied, await ledger.do(outbox.read_last_seq)}:
        return None
    differing = compare_counts(held, counted)
    if not differing:
        return None
    counts = ", ".join(f"{language} {n:,} instead of {wanted:,}" for language, (wanted, n) in sorted(differing.items()))
    return f"counts other stories than the ledger: {counts}; {INDEX_REPAIR}"


# What is kept beside the ledger; also beside a run: the passage index, works, the pages of submitted stories


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
        return explain_missing_section(stories.count_works(db))
    if (sync := runs.read_last_of_command(db, "reference")) is None:
        return f"the works were never listed: {SYNC}"
    if sync["status"] != "done":
        why = f" ({sync['error']})" if sync["error"] else ""
        return f"the last sync is on record as {sync['status']}{why}: {SYNC}"
    if reference.kind == "manifest" and _read_changed_at(reference) > sync["started_at"]:
        return f"{reference.manifest} has changed since the last sync: {SYNC}"
    if lacking := sum(catalogue.without_fingerprint for catalogue in stories.list_catalogues(db)):
        without = format_count(lacking, "work has no fingerprint", "works have no fingerprint")
        return f"{without}: {SYNC}, which says why"
    return None


def _read_changed_at(reference: Reference) -> int:
    """When the list of works was last written, in milliseconds since 1970."""
    assert reference.manifest is not None
    return reference.manifest.stat().st_mtime_ns // 1_000_000


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
