"""Laws: a story's nominees are what comparing it with each story it met gives, best first, and what a cap leaves out is
counted; a batch's pairs are all those of one language whose bands meet, and none across languages.
"""

from dataclasses import dataclass
from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from daemon.core.minhash import ROWS
from daemon.core.nominate import Met, Nominee, nominate, together
from daemon.core.verify import hamming, hash_rows
from daemon.records import Banded, Language

ids = st.integers(0, 2**63 - 1)
# Around one hash and one signature, so that many are near and some equally so.
hashes = st.one_of(
    st.binary(min_size=16, max_size=16),
    st.sets(st.integers(0, 127), max_size=9).map(lambda bits: sum(1 << bit for bit in bits).to_bytes(16)),
)
signatures = st.one_of(
    st.none(),
    st.sets(st.integers(0, ROWS - 1), max_size=ROWS).map(lambda rows: bytes(n in rows for n in range(ROWS))),
)
few_languages = st.sampled_from([Language.HINDI, Language.MARATHI])
crowd = st.dictionaries(ids, st.builds(Banded, few_languages, hashes, signatures), min_size=1, max_size=20)


@dataclass(frozen=True)
class Limits:
    hamming: int
    bands: int
    shared_bands: int
    agreeing_rows: int
    max_matches: int


limits = st.fixed_dictionaries(
    dict.fromkeys(
        Language,
        st.builds(
            Limits, st.integers(0, 7), st.sampled_from([8, 32]), *[st.integers(*n) for n in ((1, 3), (0, 64), (1, 6))]
        ),
    )
)


def bits_between(a: Banded, b: Banded) -> int:
    return (int.from_bytes(a.simhash) ^ int.from_bytes(b.simhash)).bit_count()


def rows_of(a: Banded, b: Banded) -> int:
    if a.signature is None or b.signature is None:
        return 0
    return sum(x == y for x, y in zip(a.signature, b.signature, strict=True))


def shared_bands(a: Banded, b: Banded, bands: int) -> int:
    if a.signature is None or b.signature is None:
        return 0
    return sum(a.signature[2 * n : 2 * n + 2] == b.signature[2 * n : 2 * n + 2] for n in range(bands))


@given(st.lists(hashes), hashes)
def test_hamming_is_the_count_of_differing_bits(rows: list[bytes], one: bytes) -> None:
    want = [(int.from_bytes(row) ^ int.from_bytes(one)).bit_count() for row in rows]
    assert hamming(hash_rows(rows), hash_rows([one])).tolist() == want


@given(crowd, limits, st.data())
def test_nominees_are_those_that_agree_most_then_the_nearest_then_the_lowest_ids(
    others: dict[int, Banded], limits: dict[Language, Limits], data: st.DataObject
) -> None:
    batch = list(others.items())[:4]
    subsets = st.builds(Met, st.sets(st.sampled_from(list(others))), st.sets(st.sampled_from(list(others))))
    met = [data.draw(subsets) for _ in batch]
    want = []
    for (story_id, one), seen in zip(batch, met, strict=True):
        wanted = limits[one.language]
        ranked = sorted(
            (-rows_of(one, other), bits_between(one, other), n)
            for n, other in others.items()
            if n in seen.near | seen.sketched
            and other.language == one.language
            and (
                bits_between(one, other) <= wanted.hamming
                or (n in seen.sketched and rows_of(one, other) >= wanted.agreeing_rows)
            )
        )
        kept = tuple(n for *_, n in ranked)
        want.append(Nominee(story_id, kept[: wanted.max_matches], max(0, len(kept) - wanted.max_matches)))
    assert nominate(batch, met, others, limits) == want


@given(crowd, limits)
def test_pairs_of_a_batch_are_those_of_one_language_whose_bands_meet(
    batch: dict[int, Banded], limits: dict[Language, Limits]
) -> None:
    want = set()
    for (a, one), (b, other) in combinations(batch.items(), 2):
        wanted = limits[one.language]
        near = bits_between(one, other) <= wanted.hamming
        sketched = shared_bands(one, other, wanted.bands) >= wanted.shared_bands
        if one.language == other.language and (near or sketched):
            want.add((frozenset((a, b)), near, sketched))
    found = [(frozenset((a, b)), near, sketched) for a, b, near, sketched in together(list(batch.items()), limits)]
    assert len(found) == len(set(found)), "a pair stands once"
    assert set(found) == want


def test_who_met_nobody_has_no_nominees() -> None:
    lone = Banded(Language.TAMIL, bytes(16), bytes(ROWS))
    wanted = dict.fromkeys(Language, Limits(3, 32, 2, 10, 50))
    assert nominate([(7, lone)], [Met(set(), set())], {}, wanted) == [Nominee(7, (), 0)]
    assert nominate([(7, lone)], [Met({9}, {9})], {}, wanted) == [Nominee(7, (), 0)], "who is gone is not nominated"
    assert nominate([], [], {}, wanted) == []
    assert list(together([], wanted)) == []
