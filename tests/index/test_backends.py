"""A URL scheme opens a backend, and a backend needs no more than the small protocol.

Every backend finds exactly the stories that lack entries, and writes what they lack and no more.
"""

from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from neardup.config import Index as IndexConfig
from neardup.config.section import read
from neardup.core.candidates.banding import Banding
from neardup.core.languages import LANGUAGES
from neardup.index.backends import OPENERS, open_index
from neardup.index.protocol import BucketStatistics, Completeness, Index, ServerHealth, read_bucket_sizes
from neardup.index.sqlite import SqliteIndex
from neardup.ledger import Ledger
from neardup.ops.doctor import _write_and_find_probe
from neardup.pipeline.gauges import refresh_gauges
from neardup.pipeline.index_sync import rebuild
from neardup.pipeline.passage_sync import open_passages
from neardup.records import BandedFingerprint, Change

from tests.support.index_under_test import Bench
from tests.support.languages import CODES, HINDI, TAMIL
from tests.support.sampling import count_examples

PROBE = BandedFingerprint(HINDI, bytes(16), bytes(64))


@pytest.mark.parametrize("scheme", [*OPENERS, "http", "memcached"])
def test_the_configuration_accepts_exactly_the_registered_schemes(scheme: str) -> None:
    url = "sqlite:" if scheme == "sqlite" else f"{scheme}://server"
    try:
        accepted = read(IndexConfig, {"url": url}).url == url
    except ValueError:
        accepted = False
    assert accepted == (scheme in OPENERS), f"{url} is accepted by the configuration or by the table, not by both"


async def test_the_sqlite_scheme_opens_the_ledgers_file(tmp_path: Path) -> None:
    index = await open_index(IndexConfig(), tmp_path / "ledger.db", dict.fromkeys(LANGUAGES, Banding()), CODES)
    assert isinstance(index, SqliteIndex)
    await index.close()
    assert (tmp_path / "ledger.db").exists()


def test_every_backend_here_has_the_optional_protocols(bench: Bench) -> None:
    assert isinstance(bench.index, BucketStatistics)
    assert isinstance(bench.index, ServerHealth)
    assert isinstance(bench.index, Completeness)


class Minimal:
    """An index with the methods of `Index` and no others."""

    def __init__(self, index: Index) -> None:
        self.read_position, self.look_up, self.apply = index.read_position, index.look_up, index.apply
        self.clear, self.admit, self.build, self.close = index.clear, index.admit, index.build, index.close


async def test_gauges_and_doctor_accept_a_minimal_index(tmp_path: Path) -> None:
    index = Minimal(SqliteIndex(tmp_path / "index.db", dict.fromkeys(LANGUAGES, Banding())))
    ledger = Ledger(tmp_path / "ledger.db")
    try:
        await rebuild(index, ledger, "v")
        await _write_and_find_probe(index)
        with closing(await open_passages(ledger)) as passages:
            await refresh_gauges(ledger, index, passages)
        assert await read_bucket_sizes(index, [PROBE]) == {}, "an index without statistics has no bucket sizes"
    finally:
        await index.close()
        ledger.close()


hashes = st.binary(min_size=16, max_size=16)
signatures = st.one_of(st.none(), st.binary(min_size=64, max_size=64))
fingerprints = st.builds(BandedFingerprint, st.sampled_from([HINDI, TAMIL]), hashes, signatures)
few = settings(
    deadline=None, max_examples=count_examples(15), suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@given(inserted=st.lists(fingerprints, max_size=6), others=st.lists(fingerprints, max_size=6))
@few
def test_stories_lack_all_entries_until_restored(
    bench: Bench, inserted: list[BandedFingerprint], others: list[BandedFingerprint]
) -> None:
    bench.clear()
    stories = [Change(0, 100 - n, None, banded, n) for n, banded in enumerate(inserted + others, 1)]
    held, lost = stories[: len(inserted)], stories[len(inserted) :]
    bench.apply(*held, applied=7)
    missing = bench.runner.run(bench.index.count_missing(stories))
    assert missing[: len(held)] == [0] * len(held), "a story in its buckets counts as missing"
    assert all(missing[len(held) :]), "a story in none of its buckets counts as complete"
    bench.runner.run(bench.index.restore(stories))
    assert bench.runner.run(bench.index.count_missing(stories)) == [0] * len(stories)
    restored = bench.read_bucket_sizes(*(story.new for story in stories if story.new))
    assert bench.read_position().applied == 7, "a repair moved the position"
    bench.clear()
    bench.apply(*stories)
    assert restored == bench.read_bucket_sizes(*(story.new for story in stories if story.new)), (
        f"{len(lost)} were restored"
    )
