"""Every index records the settings that decide on buckets, and notices when they have changed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from neardup.core.candidates.banding import Banding
from neardup.core.fingerprint.minhash import ROWS
from neardup.index.packed_buckets import MAX_BITS, MIN_BITS
from neardup.index.protocol import Bucket, BucketKind, IndexPosition
from neardup.records import BandedFingerprint, Change

from tests.support.index_under_test import KINDS, Bench
from tests.support.languages import HINDI, MALAYALAM, ODIA, TAMIL

SIMHASH = bytes(range(16))
BASE = bytes(range(ROWS))


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
