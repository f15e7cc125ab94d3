"""Every index nominates by signature exactly the stories that share enough bands, despite replays, and reports the
buckets that it did not read in full.
"""

from collections.abc import Sequence
from hashlib import blake2b
from itertools import product

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from neardup.core.candidates.banding import Banding
from neardup.core.fingerprint.minhash import ROWS
from neardup.core.languages import LANGUAGES
from neardup.index.protocol import BucketKind, IndexPosition
from neardup.records import BandedFingerprint, Change, Language

from tests.support.builders import signature_band_values
from tests.support.index_under_test import Bench
from tests.support.languages import ENGLISH, GUJARATI, HINDI, MARATHI, ODIA, TAMIL, TELUGU
from tests.support.sampling import CHAOS, count_examples

SIMHASH = bytes(range(16))
BASE = bytes(range(ROWS))
SPOKEN = st.sampled_from([HINDI, ENGLISH])
# Signatures that share exactly the bands with BASE whose bits are set.
signatures = st.one_of(
    st.integers(0, 2**32 - 1), st.sets(st.integers(0, 31), max_size=4).map(lambda bands: sum(1 << b for b in bands))
).map(lambda bits: bytes(row ^ 0xFF * (~bits >> n // 2 & 1) for n, row in enumerate(BASE)))
stories = st.lists(st.tuples(SPOKEN, st.one_of(st.none(), signatures)), max_size=12)
reused = settings(
    deadline=None, max_examples=count_examples(12 * CHAOS), suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def unlike(n: int) -> bytes:
    """The n-th of many unrelated SimHashes."""
    return blake2b(n.to_bytes(8), digest_size=16).digest()


def changes_of(signed: Sequence[tuple[Language, bytes | None]]) -> list[Change]:
    """Inserts of stories 0, 1, ... by changes 1, 2, ... under numbers 100, 101, ...; no two SimHashes are near."""
    return [
        Change(n + 1, n, None, BandedFingerprint(language, unlike(n), signature), 100 + n)
        for n, (language, signature) in enumerate(signed)
    ]


def sharing(log: Sequence[Change], probe: BandedFingerprint, banding: Banding) -> list[int]:
    """The numbers of the stories that share enough bands with the probe, by comparing each."""
    wanted = signature_band_values(probe.signature, banding.bands)
    return [
        change.number
        for change in log
        if change.new and change.new.signature and change.new.language == probe.language
        and sum(map(int.__eq__, wanted, signature_band_values(change.new.signature, banding.bands))) >= banding.shared
    ]  # fmt: skip


@given(banding=st.builds(Banding, bands=st.sampled_from([8, 16, 32]), shared=st.integers(1, 3)), signed=stories)
@reused
def test_exactly_the_stories_sharing_enough_bands_are_found(
    bench: Bench, banding: Banding, signed: list[tuple[Language, bytes | None]]
) -> None:
    bench.reopen(banding)
    bench.clear()
    log = changes_of(signed)
    bench.apply(*log, applied=len(log))
    probes = [BandedFingerprint(HINDI, SIMHASH, BASE)]
    probes += [replace(change.new, simhash=SIMHASH) for change in log if change.new]
    for probe, numbers in zip(probes, bench.numbers(*probes), strict=True):
        assert numbers == sharing(log, probe, banding), f"{banding}, {probe.language}"


@given(signed=stories, pages=st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12)), max_size=6))
@reused
def test_replayed_changes_change_nothing(
    bench: Bench, signed: list[tuple[Language, bytes | None]], pages: list[tuple[int, int]]
) -> None:
    bench.clear()
    log, done = changes_of(signed), 0
    for first, size in [*pages, (0, len(log))]:
        start = min(first, done)  # at or before the position, never after it
        end = min(start + size, len(log))
        bench.apply(*log[start:end], applied=end)
        done = max(done, end)
        assert bench.read_position().applied == done, "the position went back"
    expected: dict[tuple[Language, int, int], int] = {}
    for language, signature in signed:
        for band, value in enumerate(signature_band_values(signature, bench.banding.bands)):
            expected[language, band, value] = expected.get((language, band, value), 0) + 1
    sizes = bench.read_bucket_sizes(*(change.new for change in log if change.new))
    signatures = [n for bucket, n in sizes.items() if bucket.kind is BucketKind.SIGNATURE]
    assert sorted(signatures) == sorted(expected.values())


def test_changes_numbered_zero_are_always_applied(bench: Bench) -> None:
    probe = BandedFingerprint(MARATHI, SIMHASH, BASE)
    bench.apply(Change(0, 1, None, probe, 11))
    bench.apply(Change(0, 2, None, probe, 12), Change(0, 3, None, probe, 13))
    bench.apply(applied=0)
    assert bench.numbers(probe) == [[11, 12, 13]]
    assert bench.read_position().applied == 0


def test_numbers_of_32_bits_are_kept(bench: Bench) -> None:
    probe = BandedFingerprint(GUJARATI, SIMHASH, BASE)
    bench.apply(*(Change(0, 1, None, probe, number) for number in (0, 10, 0x0D0A0000, 2**32 - 1)))
    assert bench.numbers(probe) == [[0, 10, 0x0D0A0000, 2**32 - 1]]


def test_an_edited_story_is_found_by_its_new_number(bench: Bench) -> None:
    first, second = (BandedFingerprint(TELUGU, unlike(n), signature) for n, signature in enumerate((BASE, bytes(ROWS))))
    bench.apply(Change(1, 7, None, first, 1), applied=1)
    bench.apply(Change(2, 7, first, second, 2), applied=2)
    assert bench.numbers(first, second) == [[1], [2]], "an edit added or removed another number"
    bench.apply(Change(3, 7, second, None), applied=3)
    assert bench.ids(second) == [set()]


@given(simhashes=st.lists(st.binary(min_size=16, max_size=16), min_size=1, max_size=5, unique=True))
@reused
def test_a_story_without_a_signature_is_found_by_its_simhash(bench: Bench, simhashes: list[bytes]) -> None:
    bench.clear()
    signed = [BandedFingerprint(TAMIL, simhash, BASE) for simhash in simhashes]
    unsigned = [BandedFingerprint(TAMIL, simhash) for simhash in simhashes]
    bench.apply(*(Change(0, n, None, banded, n) for n, banded in enumerate(signed + unsigned)))
    found = bench.look_up(*signed, *unsigned)
    for n in range(len(simhashes)):
        for story in (found[n], found[len(simhashes) + n]):
            assert {n, len(simhashes) + n} <= story.ids | set(story.numbers.tolist())
        assert set(range(len(simhashes))) <= set(found[n].numbers.tolist())
        assert bench.packed or not len(found[len(simhashes) + n].numbers)


def test_numbers_of_former_versions_hide_no_story(bench: Bench) -> None:
    bench.reopen(Banding(max_bucket=2))
    banded = BandedFingerprint(HINDI, SIMHASH, BASE)
    log = [Change(n, 7, banded if n > 1 else None, banded, n) for n in range(1, 10)]
    log += [Change(n, 7 + n, None, banded, n) for n in range(10, 13)]
    bench.apply(*log, applied=log[-1].seq)
    assert bench.numbers(banded) == [[*range(1, 13)]]
    assert bench.ids(banded) == [{7, 17, 18, 19}], "an edited story is not found exactly once"


@given(signed=stories)
@reused
def test_a_lookup_is_the_same_alone_and_in_a_batch(bench: Bench, signed: list[tuple[Language, bytes | None]]) -> None:
    bench.clear()
    bench.apply(*changes_of(signed))
    probes = [BandedFingerprint(language, SIMHASH, signature) for language, signature in [*signed, *signed]]
    for probe, found in zip(probes, bench.look_up(*probes), strict=True):
        [alone] = bench.look_up(probe)
        assert (found.ids, found.numbers.tolist(), found.large) == (alone.ids, alone.numbers.tolist(), alone.large)


def test_a_large_bucket_is_read_whole_and_reported_with_its_size(bench: Bench) -> None:
    bench.reopen(Banding(shared=1, max_bucket=3))
    other = BASE[:6] + bytes(ROWS - 6)
    log = [
        Change(0, story_id, None, BandedFingerprint(HINDI, SIMHASH, signature), number)
        for story_id, number, signature in [(9, 1, BASE), (7, 2, BASE), (8, 3, BASE), (5, 4, other), (6, 5, other)]
    ]
    bench.apply(*log)
    probes = [
        BandedFingerprint(HINDI, SIMHASH, other),
        BandedFingerprint(HINDI, SIMHASH, BASE),
        BandedFingerprint(HINDI, SIMHASH),
        BandedFingerprint(ODIA, SIMHASH, other),
    ]
    [full, first, unsigned, elsewhere] = bench.look_up(*probes)
    assert full.ids == unsigned.ids == (set() if bench.packed else {5, 6, 7, 8, 9})
    assert full.numbers.tolist() == first.numbers.tolist() == [1, 2, 3, 4, 5]
    assert unsigned.numbers.tolist() == ([1, 2, 3, 4, 5] if bench.packed else [])
    large = {bucket: n for bucket, n in bench.read_bucket_sizes(probes[0]).items() if n > 3}
    signatures = {bucket: n for bucket, n in large.items() if bucket.kind is BucketKind.SIGNATURE}
    assert sorted((bucket.language, bucket.band) for bucket in signatures) == [("HINDI", band) for band in range(3)]
    if not bench.packed:
        keys = sorted(map(str, signatures))
        assert keys == ["sketch:HINDI:0:0001", "sketch:HINDI:1:0203", "sketch:HINDI:2:0405"]
        large = signatures | {bucket: n for bucket, n in full.large.items() if bucket.kind is BucketKind.SIMHASH}
        assert "HINDI:0:0001+HINDI:1:0203" in map(str, large), "intersections are reported, not single bands"
        assert len(large) == 3 + 4
    assert full.large == large
    assert set(large.values()) == {5}
    assert unsigned.large == {bucket: n for bucket, n in large.items() if bucket not in signatures}
    assert not elsewhere.large

    bench.reopen(Banding(max_bucket=5))
    assert not bench.look_up(BandedFingerprint(HINDI, SIMHASH, other))[0].large, "a bucket of max_bucket is reported"


@given(signed=stories)
@reused
def test_a_change_of_shared_bands_needs_no_rebuild(bench: Bench, signed: list[tuple[Language, bytes | None]]) -> None:
    bench.clear()
    log = changes_of(signed)
    bench.apply(*log, applied=len(log))
    probe = BandedFingerprint(ENGLISH, SIMHASH, BASE)
    for shared in (1, 2, 3):
        bench.reopen(Banding(shared=shared))
        assert bench.read_position() == IndexPosition("ledger-1", "version-1", len(log))
        assert bench.numbers(probe) == [sharing(log, probe, bench.banding)]


def test_a_lookup_may_take_more_than_one_command(bench: Bench) -> None:
    values = [bytes([n]) * ROWS for n in range(100)]
    probes = [
        BandedFingerprint(language, unlike(n), value) for n, (value, language) in enumerate(product(values, LANGUAGES))
    ]
    log = [Change(n + 1, n, None, probe, n) for n, probe in enumerate(probes)]
    bench.apply(*log, applied=len(log))
    assert bench.numbers(*probes) == [[n] for n in range(len(probes))]
