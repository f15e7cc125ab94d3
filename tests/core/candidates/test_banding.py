"""Laws: two hashes within the distance share at least one group of bands, at every distance from 0 to 7; the groups
contain the bands 0 to 7, each once.
"""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from neardup.core.candidates.banding import (
    BANDS,
    MAX_DISTANCE,
    SHARED_BLOCKS,
    cut_band_values,
    divide_bands,
    hash_bands,
    hash_blocks,
)
from neardup.core.fingerprint.minhash import ROWS, stack_signatures
from neardup.core.fingerprint.word_hashes import hash_rows

from tests.support.builders import signature_band_values

DISTANCES = range(BANDS)
hashes = st.binary(min_size=16, max_size=16)
distances = st.sampled_from(DISTANCES)


def flipped(simhash: bytes, bits: set[int]) -> bytes:
    return (int.from_bytes(simhash) ^ sum(1 << bit for bit in bits)).to_bytes(16)


@given(hashes, distances, st.data())
def test_hashes_within_the_distance_share_a_group(simhash: bytes, distance: int, data: st.DataObject) -> None:
    bits = data.draw(st.sets(st.integers(0, 127), max_size=distance))
    near = flipped(simhash, bits)
    first, second = cut_band_values(simhash), cut_band_values(near)
    equal = [first[g.start : g.stop] == second[g.start : g.stop] for g in divide_bands(distance)]
    assert any(equal), "no group is equal"


@given(hashes, distances, st.integers(1, 16), st.data())
def test_hashes_within_the_distance_share_two_blocks(
    simhash: bytes, distance: int, bits: int, data: st.DataObject
) -> None:
    differing = data.draw(st.sets(st.integers(0, 127), max_size=distance))
    first, second = hash_blocks(hash_rows([simhash, flipped(simhash, differing)]), distance, bits)
    assert len(first) == distance + SHARED_BLOCKS
    assert (first == second).sum() >= SHARED_BLOCKS
    assert first.max() < 1 << bits


@given(hashes, distances, st.integers(0, 127))
def test_each_bit_belongs_to_one_block(simhash: bytes, distance: int, bit: int) -> None:
    first, second = hash_blocks(hash_rows([simhash, flipped(simhash, {127 - bit})]), distance, 16)
    assert set((first != second).nonzero()[0]) <= {(bit * len(first) + len(first) - 1) // 128, bit * len(first) // 128}


@given(st.binary(min_size=ROWS, max_size=ROWS), st.integers(1, 32), st.integers(1, 16))
def test_a_narrowed_band_depends_on_the_band_alone(signature: bytes, bands: int, bits: int) -> None:
    changed_behind = signature[: 2 * bands] + bytes(255 - byte for byte in signature[2 * bands :])
    first, second = hash_bands(stack_signatures([signature, changed_behind]), bands, bits)
    assert first.tolist() == second.tolist()
    assert first.max() < 1 << bits
    whole = hash_bands(stack_signatures([signature]), bands, 16)
    assert whole[0].tolist() == signature_band_values(signature, bands)


@pytest.mark.parametrize("bits", range(1, 17))
def test_narrowing_spreads_the_bands_evenly(bits: int) -> None:
    all_values = b"".join(value.to_bytes(2) + bytes(ROWS - 2) for value in range(1 << 16))
    values = hash_bands(stack_signatures([all_values[n : n + ROWS] for n in range(0, len(all_values), ROWS)]), 1, bits)
    assert set(np.bincount(values[:, 0])) == {1 << 16 - bits}


@given(hashes, distances)
def test_one_more_bit_can_change_every_group(simhash: bytes, distance: int) -> None:
    """The law is tight: fewer groups would not be enough."""
    far = cut_band_values(flipped(simhash, {127 - 16 * g.start for g in divide_bands(distance)}))
    assert all(cut_band_values(simhash)[g.start : g.stop] != far[g.start : g.stop] for g in divide_bands(distance))


@given(hashes)
@example(bytes(16))
@example(bytes.fromhex("a8d30000000000000000000000000001"))
def test_each_band_is_four_digits_of_the_hash(simhash: bytes) -> None:
    values = cut_band_values(simhash)
    assert len(values) == BANDS
    assert "".join(values) == simhash.hex().upper()
    assert {len(value) for value in values} == {4}


@pytest.mark.parametrize("distance", DISTANCES)
def test_the_groups_contain_each_band_once(distance: int) -> None:
    sizes = [len(group) for group in divide_bands(distance)]
    assert [band for group in divide_bands(distance) for band in group] == list(range(BANDS))
    assert len(sizes) == distance + 1
    assert max(sizes) - min(sizes) <= 1, "the groups differ by more than one band"


def test_distance_3_needs_four_groups_of_two_bands() -> None:
    assert [list(group) for group in divide_bands(3)] == [[0, 1], [2, 3], [4, 5], [6, 7]]


def test_a_band_is_written_as_the_layout_documents_it() -> None:
    assert cut_band_values(bytes.fromhex("a8d3" + "00" * 12 + "0f0f")) == ["A8D3", *["0000"] * 6, "0F0F"]


@pytest.mark.parametrize("distance", [-1, 8, 9, 128])
def test_a_distance_that_bands_cannot_guarantee_is_refused(distance: int) -> None:
    with pytest.raises(ValueError, match=f"0 to {MAX_DISTANCE}, not {distance}: a whole band must stay untouched"):
        divide_bands(distance)
