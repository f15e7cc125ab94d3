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


def want_of(one: Banded, met: Met, others: dict[int, Banded], wanted: Limits) -> list[int]:
    ranked = sorted(
        (-rows_of(one, other), bits_between(one, other), n)
        for n, other in others.items()
        if n in met.near | met.sketched
        and other.language == one.language
        and (
            bits_between(one, other) <= wanted.hamming
            or (n in met.sketched and rows_of(one, other) >= wanted.agreeing_rows)
        )
    )
    return [n for *_, n in ranked]


@given(crowd, st.integers(1, 3), limits, st.data())
def test_nominees_are_those_that_agree_most_then_the_nearest_then_the_lowest_ids(
    others: dict[int, Banded], twins: int, limits: dict[Language, Limits], data: st.DataObject
) -> None:
    groups = [
        ([story_id, *(-1 - n - 9 * k for k in range(twins - 1))], one)
        for n, (story_id, one) in enumerate(list(others.items())[:4])
    ]
    others |= {story_id: one for ids, one in groups for story_id in ids}
    met, want = [], []
    for ids, one in groups:
        strangers = st.sets(st.sampled_from([n for n in others if n not in ids] or [2**62]))
        met.append(data.draw(st.builds(Met, strangers, strangers)))
        for story_id in ids:
            siblings = set(ids) - {story_id}
            kept = want_of(one, Met(met[-1].near | siblings, met[-1].sketched), others, limits[one.language])
            most = limits[one.language].max_matches
            want.append(Nominee(story_id, tuple(kept[:most]), max(0, len(kept) - most)))
    assert nominate(groups, met, others, limits) == want


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
    assert nominate([([7], lone)], [Met(set(), set())], {}, wanted) == [Nominee(7, (), 0)]
    assert nominate([([7], lone)], [Met({9}, {9})], {}, wanted) == [Nominee(7, (), 0)], "who is gone is not nominated"
    assert nominate([], [], {}, wanted) == []
    assert list(together([], wanted)) == []
