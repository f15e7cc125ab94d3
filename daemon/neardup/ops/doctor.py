"""The checks of `neardup doctor`, one for each part of an installation.

The check of the index writes a probe, a story that does not exist, and looks it up.
"""

import unicodedata
from collections.abc import AsyncIterator
from contextlib import closing
from dataclasses import replace

import numpy as np
import xxhash

from neardup.app import open_index
from neardup.config import Config
from neardup.core.fingerprint import version as fingerprint_version
from neardup.core.native.page import WHY_UNREAD
from neardup.errors import Fatal, IndexDamaged, NeardupError
from neardup.index.protocol import BucketStatistics, Index, LookupResult, ServerHealth
from neardup.languages import LANGUAGES, SHIPPED
from neardup.ledger import (
    Ledger,
    connect,
    damage,
    files,
    now_ms,
    runs,
    titles,
    transaction,
    translate_errors,
)
from neardup.meaning import vectors
from neardup.meaning.embedders import probe
from neardup.meaning.parts import open_parts
from neardup.ops import index_contents, listing_checks, passage_contents, submission_contents
from neardup.ops.check_result import CheckResult, Level, NeedsRepair
from neardup.pipeline.index_sync import refuse_index_mismatch
from neardup.pipeline.passage_sync import open_passages
from neardup.query.title_search import open_titles
from neardup.records import BandedFingerprint, Change
from neardup.timestamps import rfc3339

PROBE_ID = -1  # no story has this id
PROBE_NUMBER = 0  # no story has this number
PROBE = BandedFingerprint(LANGUAGES[0], bytes(range(16)), bytes(range(64)))
UNSIGNED = replace(PROBE, signature=None)  # the probe as a text with too few shingles for a signature


async def examine(config: Config) -> AsyncIterator[CheckResult]:
    """Check the configuration, what is stored, the listings with their object stores, clock and fingerprints."""
    checks = {
        "ledger": _ledger,
        "index": _index,
        "passages": _passages,
        "titles": _titles,
        "submitted pages": _submitted_pages,
        "source": listing_checks.check_source,
        "object store": listing_checks.check_store,
        "reference": listing_checks.check_reference,
        "meaning": _meaning,
        "clock": _clock,
        "native core": _native_core,
        "fingerprints": _fingerprints,
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


async def _ledger(config: Config) -> str:
    if config.ledger.path.exists() and not files.is_read_only(config.ledger.path):
        damage.examine(config.ledger.path)
    db = connect(config.ledger.path)
    try:
        with transaction(db):
            runs.put(db, "doctor", str(now_ms()))
        recorded = runs.get(db, "fingerprint_version")
        current, held = fingerprint_version.version(config.registry), runs.stories_by_language(db)
        if recorded is not None and (why := fingerprint_version.difference(recorded, current, held)):
            raise Fatal(f"holds {why}: `neardup backfill --refingerprint` makes them again")
        return f"{config.ledger.path}, {sum(runs.stories_by_language(db).values())} stories, writable"
    finally:
        db.close()


async def _index(config: Config) -> str:
    connect(config.ledger.path).close()  # refuses a damaged file, which may hold the SQLite index
    index = await open_index(config)
    try:
        await _check_index(config, index)
        await _round_trip(index)
        if isinstance(index, ServerHealth) and (problem := await index.problem()):
            raise Fatal(problem)
        with closing(Ledger(config.ledger.path)) as ledger:
            difference = await index_contents.difference(index, ledger)
        count = f"{sum((await index.story_counts()).values())} stories; " if isinstance(index, BucketStatistics) else ""
    except IndexDamaged as error:
        raise NeedsRepair(f"{error}; {index_contents.REPAIR}") from error
    finally:
        await index.close()
    if difference is not None:
        raise NeedsRepair(difference)
    return f"{count}a probe was written and found"


async def _check_index(config: Config, index: Index) -> None:
    db = connect(config.ledger.path)
    try:
        current, held = fingerprint_version.version(config.registry), runs.stories_by_language(db)
        refuse_index_mismatch(await index.position(), runs.get(db, "ledger_id") or "", current, held)
    finally:
        db.close()


async def _round_trip(index: Index) -> None:
    """Write a probe and find it; raises Fatal if it is not found.

    Packed buckets, which hold story numbers, never lose a number.  So the probe is written only to those that do not
    hold its number from an earlier call: if each call added it once more, it would take the places of stories among
    the last max_bucket members, which lookups read.
    """
    if isinstance(index, ServerHealth):
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
    _, [by_simhash, by_both] = await index.lookup([UNSIGNED, PROBE])
    return by_simhash, by_both


async def _passages(config: Config) -> str:
    with closing(Ledger(config.ledger.path)) as ledger, closing(await open_passages(ledger)) as passages:
        if (difference := await passage_contents.difference(passages, ledger)) is not None:
            raise NeedsRepair(difference)
        return await passage_contents.summary(passages)


async def _titles(config: Config) -> str:
    path = files.titles_file(config.ledger.path)
    if not path.exists():
        return "no index of titles: `neardup review` makes it"
    with closing(open_titles(config.ledger.path)) as index, closing(connect(config.ledger.path)) as db:
        is_complete = index.position() == titles.ends(db)
    return f"{path}, {'complete' if is_complete else 'behind: `neardup review` reads the new titles while it is open'}"


async def _submitted_pages(config: Config) -> str:
    with closing(connect(config.ledger.path)) as db:
        return submission_contents.summary(db, config.ledger.path)


async def _meaning(config: Config) -> str:
    if config.meaning is None:
        return "off: no [meaning]"
    async with open_parts(config) as parts:
        held = sum((await parts.vectors.do(vectors.count_stories)).values())
        waiting = await parts.vectors.do(vectors.count_waiting)
        size = len(await probe(parts.embedder))
    return f"{parts.embedder.model}, {size} dimensions; {held:,} stories have vectors, {waiting:,} wait"


async def _clock(config: Config) -> str:
    db = connect(config.ledger.path)
    try:
        for run in runs.latest(db, 1):
            if run["started_at"] > now_ms():
                began = rfc3339(run["started_at"])
                raise Fatal(f"the last run began at {began}, in the future: the clock was set back")
        return str(rfc3339(now_ms()))
    finally:
        db.close()


async def _native_core(_: Config) -> str:
    if WHY_UNREAD is not None:
        raise NeedsRepair(f"{WHY_UNREAD}; the reference in Python runs, which is slower")
    return "built for this machine"


async def _fingerprints(config: Config) -> str:
    if changed := fingerprint_version.changed_since_pinned():
        raise Fatal(
            f"the fingerprints of {', '.join(changed)} differ from those of this release (numpy {np.__version__}, "
            f"xxhash {xxhash.VERSION}, Unicode {unicodedata.unidata_version}): install the versions of the lock file"
        )
    return f"version {fingerprint_version.algorithm()}, {len(SHIPPED)} golden texts have their pinned fingerprints"
