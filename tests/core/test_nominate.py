"""Laws: a story's nominees are what comparing it with each other story gives, the closest first, and what a cap leaves
out is counted; a batch's pairs are all those of one language within its distance, and none across languages.
"""

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.core.nominate import Nominee, nominate, together
from daemon.core.verify import hamming, hash_rows, judge
from daemon.records import Banded, Candidate, Kind, Language

ids = st.integers(0, 2**63 - 1)
distances = st.integers(0, 7)
# Around one hash, so that many are near and some equally so.
hashes = st.one_of(
    st.binary(min_size=16, max_size=16),
    st.sets(st.integers(0, 127), max_size=9).map(lambda bits: sum(1 << bit for bit in bits).to_bytes(16)),
)
batches = st.dictionaries(ids, st.builds(Banded, st.sampled_from(Language), hashes), max_size=25)
few_languages = st.sampled_from([Language.HINDI, Language.MARATHI])
crowded = st.dictionaries(ids, st.builds(Banded, few_languages, hashes), max_size=25)


def bits_between(a: bytes, b: bytes) -> int:
    return (int.from_bytes(a) ^ int.from_bytes(b)).bit_count()


@given(st.lists(hashes), hashes)
def test_hamming_is_the_count_of_differing_bits(rows: list[bytes], one: bytes) -> None:
    assert hamming(hash_rows(rows), hash_rows([one])).tolist() == [bits_between(row, one) for row in rows]


@given(hashes, st.dictionaries(ids, hashes), distances, st.integers(1, 6))
def test_nominees_are_the_closest_then_the_lowest_ids(
    simhash: bytes, others: dict[int, bytes], max_hamming: int, max_matches: int
) -> None:
    near = sorted((bits_between(simhash, h), n) for n, h in others.items() if bits_between(simhash, h) <= max_hamming)
    want = Nominee(7, tuple(n for _, n in near[:max_matches]), max(0, len(near) - max_matches))
    assert nominate(7, simhash, others, max_hamming, max_matches) == want


@given(st.one_of(batches, crowded), st.tuples(*[distances] * len(Language)))
def test_pairs_of_a_batch_are_those_near_in_one_language(batch: dict[int, Banded], limits: tuple[int, ...]) -> None:
    within = dict(zip(Language, limits, strict=True))
    want = {
        frozenset((a, b))
        for a, b in combinations(batch, 2)
        if batch[a].language == batch[b].language
        and bits_between(batch[a].simhash, batch[b].simhash) <= within[batch[a].language]
    }
    found = [frozenset(pair) for pair in together(list(batch.items()), within)]
    assert len(found) == len(set(found)), "each pair once"
    assert set(found) == want


@given(hashes, hashes, hashes, st.booleans(), distances)
def test_a_pair_gets_the_first_kind_that_holds(a: bytes, b: bytes, text: bytes, same: bool, max_hamming: int) -> None:
    other = text if same else bytes(byte ^ 1 for byte in text)
    flag = judge(Candidate(1, 2, Language.ODIA, text, other, a, b, 100), max_hamming)
    kind = Kind.EXACT if same else Kind.NEAR if bits_between(a, b) <= max_hamming else None
    assert (flag and flag.kind) == kind
    assert flag is None or (flag.a, flag.b, flag.hamming) == (1, 2, bits_between(a, b))


@pytest.mark.parametrize("others", [{}, {1: b"\xff" * 16}], ids=["none", "a far one"])
def test_nothing_near_nominates_nothing(others: dict[int, bytes]) -> None:
    assert nominate(7, bytes(16), others, 3, 50) == Nominee(7, (), 0)


def test_a_cap_keeps_the_closest_with_the_lowest_ids_and_counts_the_rest() -> None:
    others = {9: bytes(16), 5: bytes(15) + b"\1", 3: bytes(15) + b"\3", 4: bytes(15) + b"\2", 8: bytes(15) + b"\xff"}
    assert nominate(7, bytes(16), others, 3, 3) == Nominee(7, (9, 4, 5), 1)


@pytest.mark.parametrize("language", Language)
def test_a_copy_in_another_language_is_no_pair(language: Language) -> None:
    batch = [(n, Banded(other, bytes(16))) for n, other in enumerate([*Language, language])]
    assert list(together(batch, dict.fromkeys(Language, 7))) == [(list(Language).index(language), len(Language))]
