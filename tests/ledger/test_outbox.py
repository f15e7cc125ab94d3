"""Laws: replaying the outbox from any point yields the stories; a number belongs to one version for ever."""

import sqlite3
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from neardup.core.languages import LANGUAGES
from neardup.ledger import connect, outbox, versions
from neardup.ledger.languages import count_by_language
from neardup.records import BandedFingerprint, Change, Outcome, Skip, Skipped, Story

from tests.support.builders import commit, fingerprinted, ledger_in_memory, stories_as_changes
from tests.support.languages import HINDI

IDS = st.integers(0, 3)
VERSIONS = st.builds(
    fingerprinted, IDS, st.integers(0, 3), st.sampled_from(list(LANGUAGES)[:2]), signature=st.just(bytes(64))
)
REMOVALS = st.builds(lambda story_id: Skipped(Story(story_id, HINDI), Skip.EMPTY), IDS)
BATCHES = st.lists(st.lists(VERSIONS | REMOVALS, unique_by=lambda outcome: outcome.story.id, max_size=4), max_size=8)


def in_bands(bands: dict[int, BandedFingerprint], read: Sequence[Change]) -> dict[int, BandedFingerprint]:
    """What an index that stood so holds after these changes; each must leave the bands that the last one entered."""
    bands = dict(bands)
    for change in read:
        assert bands.get(change.story_id) == (change.old and without_signature(change.old)), change
        assert change.number == (change.seq if change.new else 0), change
        bands.pop(change.story_id, None)
        if change.new:
            bands[change.story_id] = without_signature(change.new)
    return bands


def without_signature(banded: BandedFingerprint) -> BandedFingerprint:
    return BandedFingerprint(banded.language, banded.simhash)


@given(batches=BATCHES, page=st.integers(1, 4), keep=st.integers(0, 12))
def test_replaying_changes_from_any_point_yields_the_stories(
    batches: list[list[Outcome]], page: int, keep: int
) -> None:
    db = ledger_in_memory()
    moments: dict[int, dict[int, BandedFingerprint]] = {0: {}}
    for batch in batches:
        commit(db, *batch)
        counted = Counter(row[0] for row in db.execute("SELECT language FROM described"))
        assert count_by_language(db) == counted
        moments[outbox.read_last_seq(db)] = {
            change.story_id: without_signature(change.new) for change in stories_as_changes(db) if change.new
        }
        outbox.prune_changes(db, keep)
    last = outbox.read_last_seq(db)
    for seq, bands in moments.items():
        if seq + 1 < outbox.read_oldest_seq(db):
            continue
        read: list[Change] = []
        while (applied := read[-1].seq if read else seq) < last:
            read += outbox.list_changes(db, applied, page)
        assert [change.seq for change in read] == list(range(seq + 1, last + 1))
        assert in_bands(bands, read) == moments[last]
    db.close()


@given(batches=BATCHES)
def test_change_carries_number_and_signature_of_its_version(batches: list[list[Outcome]]) -> None:
    db = ledger_in_memory()
    for batch in batches:
        commit(db, *batch)
    read = {change.number: change for change in outbox.list_changes(db, 0, 99)}
    for held in stories_as_changes(db):
        assert (read[held.number].story_id, read[held.number].new) == (held.story_id, held.new)
    db.close()


@pytest.fixture
def db(tmp_path: Path) -> sqlite3.Connection:
    return connect(tmp_path / "ledger.db")


def test_pruning_removes_the_oldest_changes(db: sqlite3.Connection) -> None:
    for n in range(10):
        commit(db, fingerprinted(n, n))
    assert outbox.read_oldest_seq(db) == 1
    outbox.prune_changes(db, 3)
    assert outbox.read_oldest_seq(db) == 8
    outbox.prune_changes(db, 0)
    assert (outbox.read_oldest_seq(db), outbox.read_last_seq(db)) == (11, 10)


def test_version_numbers_are_never_reused(db: sqlite3.Connection) -> None:
    given = []
    for text in (1, 2, 3):
        commit(db, fingerprinted(7, text))
        given.append(outbox.list_changes(db, 0, 99)[-1].number)
    commit(db, Skipped(Story(7, HINDI), Skip.EMPTY), fingerprinted(8, 8))
    given.append(outbox.list_changes(db, 0, 99)[-1].number)
    assert given == sorted(set(given)), "an index holds numbers of what was edited or removed"
    assert len(versions.read_existing_fingerprints(db, (), given[:3])) == 0, "which must mean nothing"
    for found in (versions.read_existing_fingerprints(db, [8], []), versions.read_existing_fingerprints(db, [], given)):
        assert found.numbers.tolist() == given[3:]
