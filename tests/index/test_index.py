"""Every index finds all pairs within its distance, applies edits and removals, and records its position.

It finds exactly the stories that lack entries, and writes what they lack and no more.  It records the settings that
decide on buckets, and notices when they have changed.
One suite for all backends: SQLite, a real Redis, a real Valkey, a real Redis cluster, and fakeredis.
"""

from collections import Counter

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from neardup.core.candidates.banding import Banding, cut_band_values
from neardup.core.fingerprint.minhash import ROWS
from neardup.core.languages import LANGUAGES
from neardup.errors import Fatal
from neardup.index.packed_buckets import MAX_BITS, MIN_BITS
from neardup.index.protocol import Bucket, BucketKind, IndexPosition
from neardup.ops.doctor import PROBE, UNSIGNED, _write_and_find_probe
from neardup.records import BandedFingerprint, Change, Language

from tests.support.index_under_test import KINDS, Bench, insert
from tests.support.languages import HINDI, MALAYALAM, ODIA, TAMIL
from tests.support.sampling import CHAOS, count_examples

DISTANCE = 3
SIMHASH = bytes(range(16))
BASE = bytes(range(ROWS))

hashes = st.binary(min_size=16, max_size=16)
reused = settings(
    deadline=None, max_examples=count_examples(20 * CHAOS), suppress_health_check=[HealthCheck.function_scoped_fixture]
)
signatures = st.one_of(st.none(), st.binary(min_size=64, max_size=64))
fingerprints = st.builds(BandedFingerprint, st.sampled_from([HINDI, TAMIL]), hashes, signatures)


def flip(simhash: bytes, bits: list[int]) -> bytes:
    value = int.from_bytes(simhash)
    for bit in bits:
        value ^= 1 << bit
    return value.to_bytes(16)


def distance(a: bytes, b: bytes) -> int:
    return (int.from_bytes(a) ^ int.from_bytes(b)).bit_count()


@given(
    limit=st.integers(0, 7),
    base=hashes,
    others=st.lists(st.lists(st.integers(0, 127), max_size=10, unique=True), min_size=1, max_size=8),
    unrelated=st.lists(hashes, max_size=4),
)
@settings(reused, max_examples=2 * reused.max_examples)
def test_no_hash_within_the_distance_is_missed(
    bench: Bench, limit: int, base: bytes, others: list[list[int]], unrelated: list[bytes]
) -> None:
    bench.reopen(Banding(hamming=limit))
    bench.clear()
    stored = dict(enumerate([flip(base, bits) for bits in others] + unrelated))
    bench.apply(*(insert(story_id, value) for story_id, value in stored.items()))
    [found] = bench.ids(BandedFingerprint(HINDI, base))
    near = {story_id for story_id, value in stored.items() if distance(base, value) <= limit}
    assert near <= found, f"missed at distance {limit}: {near - found}"
    assert found <= stored.keys(), "a story was found that was never stored"


@given(changes=st.lists(st.tuples(st.integers(0, 5), st.sampled_from(LANGUAGES[:3]), hashes), max_size=12))
@reused
def test_edits_leave_a_story_in_the_bands_of_its_last_version(
    bench: Bench, changes: list[tuple[int, Language, bytes]]
) -> None:
    bench.clear()
    current: dict[int, BandedFingerprint] = {}
    log: list[Change] = []
    for story_id, language, value in changes:
        banded = BandedFingerprint(language, value)
        log.append(Change(len(log) + 1, story_id, current.get(story_id), banded, len(log) + 1))
        current[story_id] = banded
    bench.apply(*log, applied=len(log))
    bench.apply(*log, applied=len(log))  # a replay changes nothing
    for story_id, former in ((change.story_id, change.old) for change in log if change.old):
        last = current[story_id]
        [found] = bench.ids(former)
        if last.language == former.language and distance(former.simhash, last.simhash) <= DISTANCE:
            assert story_id in found
        elif last.language != former.language or not set(cut_band_values(former.simhash)) & set(
            cut_band_values(last.simhash)
        ):
            assert story_id not in found, f"story {story_id} is still in the bands of a former version"
    expected: dict[Language, int] = {}
    for banded in current.values():
        expected[banded.language] = expected.get(banded.language, 0) + 1
    assert bench.runner.run(bench.index.count_stories()) == expected


@given(probes=st.lists(fingerprints, max_size=12), page=st.integers(1, 12), sized=st.booleans())
@reused
def test_a_built_index_equals_one_that_grew(
    bench: Bench, probes: list[BandedFingerprint], page: int, sized: bool
) -> None:
    """With widths chosen for its sizes, and with the default widths."""
    stories = [(n + 1, 100 - n, banded) for n, banded in enumerate(probes)]
    sizes = Counter(banded.language for banded in probes) if sized else {}

    def facts() -> list[object]:
        found = [(result.ids, result.numbers.tolist()) for result in bench.look_up(*probes)]
        return [found, bench.read_bucket_sizes(*probes), bench.runner.run(bench.index.count_stories())]

    bench.clear(sizes)
    bench.apply(*(Change(number, story_id, None, banded, number) for number, story_id, banded in stories))
    grown = facts()
    bench.clear(sizes)
    assert bench.build(stories, page) == len(stories), "each story is counted once"
    assert facts() == grown
    assert bench.read_position() == IndexPosition("ledger-1", "version-1", None), "a build sets no position"


def test_a_removed_story_is_found_no_more(bench: Bench) -> None:
    banded = BandedFingerprint(TAMIL, bytes(range(16)))
    bench.apply(insert(7, banded.simhash, banded.language), applied=1)
    assert bench.ids(banded) == [{7}]
    bench.apply(Change(2, 7, banded, None), applied=2)
    assert bench.ids(banded) == [set()]
    assert bench.runner.run(bench.index.count_stories()) == {}
    assert bool(bench.read_bucket_sizes(banded)) == bench.packed, (
        "only packed buckets keep the number of a removed story"
    )


def test_a_lookup_finds_only_stories_of_its_language(bench: Bench) -> None:
    value = bytes(range(16))
    for number, language in enumerate(LANGUAGES):
        bench.apply(insert(number, value, language))
    assert bench.ids(*(BandedFingerprint(language, value) for language in LANGUAGES)) == [
        {n} for n in range(len(LANGUAGES))
    ]


def test_the_position_is_none_until_set_and_after_a_clear(bench: Bench) -> None:
    assert bench.read_position() == IndexPosition("ledger-1", "version-1", None)
    bench.apply(insert(1, bytes(16)))
    assert bench.read_position().applied is None, "a page of a rebuild set a position"
    bench.apply(applied=41)
    assert bench.read_position().applied == 41
    assert bench.runner.run(bench.index.look_up([]))[0] == 41
    bench.clear()
    assert bench.read_position().applied is None
    assert bench.ids(BandedFingerprint(HINDI, bytes(16))) == [set()]


def test_ids_keep_all_their_digits(bench: Bench) -> None:
    largest = 2**63 - 1
    bench.apply(insert(largest, bytes(16), number=1), insert(6755373518901234, bytes(16), number=2))
    assert bench.ids(BandedFingerprint(HINDI, bytes(16))) == [{largest, 6755373518901234}]


def test_probes_of_the_doctor_fill_no_bucket(bench: Bench) -> None:
    probes = (PROBE, UNSIGNED)
    bench.runner.run(_write_and_find_probe(bench.index))
    once = bench.read_bucket_sizes(*probes)
    for _ in range(3):
        bench.runner.run(_write_and_find_probe(bench.index))
    assert bench.read_bucket_sizes(*probes) == once
    assert bench.runner.run(bench.index.count_stories()) == {}
    assert bench.build([(7, 70, PROBE)], 10) == 1, "a build beside a probe of the doctor counts one story"
    assert 7 in bench.numbers(PROBE)[0]


def test_a_story_number_of_33_bits_is_refused_whole(bench: Bench) -> None:
    with pytest.raises(Fatal, match="32 bits"):
        bench.apply(Change(1, 1, None, BandedFingerprint(HINDI, bytes(16), bytes(64)), 1 << 32), applied=1)
    assert bench.read_position().applied is None
    bench.apply(insert(1, bytes(16)), applied=2)
    assert bench.read_position().applied == 2


@given(inserted=st.lists(fingerprints, max_size=6), others=st.lists(fingerprints, max_size=6))
@settings(reused, max_examples=count_examples(15))
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


def test_a_change_of_bands_is_noticed(bench: Bench) -> None:
    bench.apply(applied=4)
    changed = IndexPosition("ledger-1", "version-1, made for another detection.bands", None)
    for other in ({}, {ODIA: Banding(bands=32)}):
        bench.reopen(Banding(bands=16), other)
        assert bench.read_position() == changed
    bench.clear()
    assert bench.read_position() == IndexPosition("ledger-1", "version-1", None)
    bench.reopen(Banding(bands=16))
    assert bench.read_position() == changed, "the bands of one language have changed"


def test_a_change_of_distance_is_noticed_by_packed_layouts(bench: Bench) -> None:
    bench.apply(applied=4)
    bench.reopen(Banding(hamming=5))
    other = IndexPosition("ledger-1", "version-1, made for another detection.hamming", None)
    assert bench.read_position() == (other if bench.packed else IndexPosition("ledger-1", "version-1", 4))


def test_an_added_language_leaves_data_and_position(bench: Bench) -> None:
    known = {HINDI: Banding(bands=16), TAMIL: Banding(bands=8)}
    bench.reopen_with(known)
    bench.clear({HINDI: 10_000_000})
    bench.apply(Change(1, 1, None, BandedFingerprint(HINDI, SIMHASH, BASE), 1), applied=1)
    bench.reopen_with({MALAYALAM: Banding(bands=32), **known})
    bench.admit("version-2")
    assert bench.read_position() == IndexPosition("ledger-1", "version-2", 1)
    bench.apply(Change(2, 2, None, BandedFingerprint(MALAYALAM, SIMHASH, BASE), 2), applied=2)
    assert bench.ids(*(BandedFingerprint(language, SIMHASH, BASE) for language in (HINDI, MALAYALAM, TAMIL))) == [
        {1},
        {2},
        set(),
    ]
    bench.admit("version-2")
    assert bench.read_position() == IndexPosition("ledger-1", "version-2", 2), "recording it again changes nothing"
    bench.reopen_with({MALAYALAM: Banding(bands=32), HINDI: Banding(bands=8), TAMIL: Banding(bands=8)})
    assert bench.read_position().applied is None, "a setting of a language that was there before has changed"


@pytest.mark.parametrize("bench", [kind for kind in KINDS if kind == "sqlite" or "compact" in kind], indirect=True)
def test_an_added_language_has_the_least_width(bench: Bench) -> None:
    bench.reopen_with({HINDI: Banding()})
    bench.clear({HINDI: 100_000_000})
    bench.reopen_with({HINDI: Banding(), ODIA: Banding()})
    bench.admit("version-2")
    every = BandedFingerprint(HINDI, b"\xff" * 16, b"\xff" * ROWS)
    bench.apply(*(Change(0, n, None, replace(every, language=name), n) for n, name in enumerate((HINDI, ODIA))))
    for language, bits in ((HINDI, MAX_BITS), (ODIA, MIN_BITS)):
        values = {
            value for bucket in bench.read_bucket_sizes(replace(every, language=language)) for value in bucket.values
        }
        assert max(values).bit_length() == bits, language


def test_bucket_sizes_cover_simhashes_and_signatures(bench: Bench) -> None:
    banded = BandedFingerprint(MALAYALAM, SIMHASH, BASE)
    bench.apply(*(Change(0, n, None, banded, n) for n in range(3)))
    sizes = bench.read_bucket_sizes(banded, banded)
    assert set(sizes.values()) == {3}
    signatures = {str(bucket) for bucket in sizes if bucket.kind is BucketKind.SIGNATURE}
    assert len(signatures) == 32
    assert bench.packed or signatures == {f"sketch:MALAYALAM:{n}:{2 * n:02X}{2 * n + 1:02X}" for n in range(32)}
    assert {bucket.language for bucket in sizes} == {MALAYALAM}
    simhashes = {bucket.band for bucket in sizes if bucket.kind is BucketKind.SIMHASH}
    assert simhashes == set(range(5 if bench.packed else 8)), "one bucket for each block or band of the SimHash"


@given(band=st.integers(0, 31), values=st.lists(st.integers(0, 0xFFFF), min_size=1, max_size=3))
def test_a_bucket_prints_as_its_documented_keys(band: int, values: list[int]) -> None:
    keys = [f"TAMIL:{band + n}:{value:04X}" for n, value in enumerate(values)]
    assert str(Bucket(BucketKind.SIMHASH, TAMIL, band, tuple(values))) == "+".join(keys)
    signature = Bucket(BucketKind.SIGNATURE, TAMIL, band, (values[0],))
    assert f"{signature}" == f"sketch:{keys[0]}"
