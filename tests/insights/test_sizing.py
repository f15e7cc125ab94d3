"""Laws of the size projections of `plan`, and a comparison with the sizes of real SQLite files."""

import random
from contextlib import closing
from dataclasses import replace
from itertools import accumulate
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from neardup.config import Detection
from neardup.core.candidates.banding import MAX_SIGNATURE_BANDS, Banding
from neardup.index import packed_buckets
from neardup.index import size as redis_size
from neardup.index.passages.index import PassageIndex
from neardup.index.size import SIZE_PROJECTIONS, LanguageShape, TierSize
from neardup.index.spread import BAND_VALUES, Spread, even_spread, signature_spread, simhash_spread
from neardup.index.sqlite import SqliteIndex
from neardup.index.titles import Position, TitleIndex
from neardup.insights.plan.project import (
    Corpus,
    days_until_full,
    index_size,
    memory_needed,
    project_passages,
    reads_per_lookup,
    title_index_bytes,
)
from neardup.insights.plan.sample import TYPICAL, measure_profile
from neardup.languages import LANGUAGES
from neardup.ledger import connect
from neardup.ledger.story_rows import StoryRow, ledger_bytes
from neardup.query.search import ROWS_AT_ONCE
from neardup.records import Fingerprint, Fingerprinted, Language, Skip, Skipped, Story

from tests.support import synthetic
from tests.support.languages import HINDI, ODIA, SAMPLED, TAMIL, TELUGU
from tests.support.synthetic_pages import pages_of
from tests.support.synthetic_stories import FIRST_ID, ID_STEP, PLATFORM, fill

ROUNDING = 1 + 1e-9
languages = st.sampled_from(list(SAMPLED))
counts = st.integers(0, 20_000_000)
backends = st.sampled_from(list(SIZE_PROJECTIONS))


def corpus_of(stories: dict[Language, int]) -> Corpus:
    return Corpus(stories, TYPICAL, Detection())


def spreads(skew: float, bits: int) -> list[Spread]:
    return [signature_spread(skew, MAX_SIGNATURE_BANDS, bits), simhash_spread(skew), even_spread(5, bits)]


@given(skew=st.sampled_from([1.0, 2.2, 10.0, 30.0]), bits=st.integers(packed_buckets.MIN_BITS, packed_buckets.MAX_BITS))
def test_every_story_is_in_a_bucket_of_each_band(skew: float, bits: int) -> None:
    for spread in spreads(skew, bits):
        assert spread.shares @ spread.counts == pytest.approx(len(spread.collisions))
        assert (spread.collisions * spread.counts.sum() / len(spread.collisions) > 0.99).all(), (
            "an even spread has the fewest collisions"
        )


@pytest.mark.parametrize("skew", [1.2, 2.2, 10.0, 30.0])
def test_a_spread_has_the_requested_skew(skew: float) -> None:
    for spread in (signature_spread(skew, MAX_SIGNATURE_BANDS, 16), simhash_spread(skew)):
        assert BAND_VALUES * spread.collisions.mean() == pytest.approx(skew, rel=0.01)


@given(stories=st.integers(1, 300), hashes=st.integers(1, 40), rng=st.randoms(use_true_random=False))
def test_the_passage_index_is_projected_exactly(stories: int, hashes: int, rng: random.Random) -> None:
    rows = [(number, np.array(sorted(rng.sample(range(2**32), hashes)), np.uint32)) for number in range(1, stories + 1)]
    profile = replace(TYPICAL[HINDI], passages=float(hashes))
    corpus = Corpus({HINDI: stories}, {HINDI: profile}, Detection())
    with TemporaryDirectory() as folder, closing(PassageIndex.open(Path(folder), "ledger", "1")) as index:
        index.insert(rows)
        index.flush(1, stories, stories)
        projected = project_passages(corpus, 10)
        assert (projected.bytes, projected.postings) == (index.size(), index.postings)
        assert 0 < projected.daily_reads <= index.size() / 4096


@given(stories=counts, skew=st.sampled_from([1.0, 10.0]))
def test_the_buckets_of_a_band_hold_all_stories(stories: int, skew: float) -> None:
    for spread in spreads(skew, 14):
        members = spread.expected(stories, lambda members: members)
        assert members == pytest.approx(stories * len(spread.collisions), rel=1e-6)
        assert spread.filled(stories) == pytest.approx(spread.expected(stories, np.sign), rel=1e-6)


@given(stories=counts, more=counts, language=languages, backend=backends, grown=st.booleans())
def test_more_stories_take_more_bytes(stories: int, more: int, language: Language, backend: str, grown: bool) -> None:
    typical = TYPICAL[language]

    def size(n: int) -> list[TierSize]:
        skews = (typical.signature_skew, typical.simhash_skew)
        shape = LanguageShape(language, n, typical.signed, typical.row.highest_id, *skews, Banding(), 14)
        return list(SIZE_PROJECTIONS[backend]([shape], grown=grown).tiers[language].values())

    for few, many in zip(size(stories), size(stories + more), strict=True):
        # a larger row of SQLite may move to overflow pages and leave less of its leaf unused
        assert backend == "sqlite" or few.bytes <= many.bytes * ROUNDING
        assert few.keys <= many.keys * ROUNDING
    few_rows, many_rows = (ledger_bytes(n, 1.0, TYPICAL[language].row) for n in (stories, stories + more))
    assert few_rows <= many_rows


@given(st.lists(st.integers(1, 2_000_000), min_size=1, max_size=50))
def test_a_bucket_needs_room_for_its_numbers(sizes: list[int]) -> None:
    members = np.array(sorted(sizes))
    for size in (redis_size.packed_bytes, redis_size.trimmed_bytes, redis_size.appended_bytes):
        assert (np.diff(size(members)) >= 0).all()
        assert (size(members) > packed_buckets.NUMBER_BYTES * members).all()
    assert (redis_size.appended_bytes(members) >= redis_size.packed_bytes(members) - 16).all(), (
        "appending must not save memory"
    )
    assert (redis_size.size_class(members) >= members).all()
    assert (redis_size.size_class(members) < np.maximum(1.25 * members, members + 16)).all()
    assert (redis_size.size_class(redis_size.size_class(members)) == redis_size.size_class(members)).all()


@given(st.integers(1, 1 << 40))
def test_a_hash_table_has_the_next_power_of_two_slots(keys: int) -> None:
    slots = redis_size.hash_table_bytes(keys) // redis_size.SLOT_BYTES
    assert slots >= keys
    assert slots & (slots - 1) == 0
    assert slots == redis_size.FEWEST_SLOTS or slots < 2 * keys


def test_the_total_is_the_sum_of_the_parts() -> None:
    corpus = corpus_of(PLATFORM)
    for layout in redis_size.REDIS_PROJECTIONS:
        size = index_size(corpus, layout)
        tiers = [tier for each in size.tiers.values() for tier in each.values()]
        parts = (
            redis_size.EMPTY_BYTES
            + sum(tier.bytes for tier in tiers)
            + redis_size.hash_table_bytes(sum(tier.keys for tier in tiers))
        )
        assert size.total == parts
        memory = memory_needed(corpus, layout)
        assert memory.pop("needed") == sum(memory.values())


def test_only_the_compact_layout_fits_in_memory() -> None:
    corpus, memory = corpus_of(PLATFORM), 8 << 30
    assert index_size(corpus, "compact").total < index_size(corpus, "documented", grown=False).total
    assert days_until_full(corpus, "documented", 10_000, memory) == 0
    days = days_until_full(corpus, "compact", 10_000, memory)
    assert days
    assert days_until_full(corpus, "compact", 20_000, memory) == pytest.approx(days / 2, abs=4)
    assert days_until_full(corpus, "compact", 0, memory) is None, "without new stories, memory never fills up"
    grown = corpus.scaled(1 + days * 10_000 / sum(PLATFORM.values()))
    assert memory_needed(grown, "compact")["needed"] <= memory


def test_a_lookup_reads_at_most_max_bucket_of_each_bucket() -> None:
    banding = Banding()
    for stories in (10_000, 100_000_000):
        tiers = reads_per_lookup(corpus_of(PLATFORM), HINDI, "compact", stories)
        for columns, reads in zip((banding.hamming + 2, banding.bands), tiers.values(), strict=True):
            assert 0 < reads.candidates < reads.numbers < banding.max_bucket * columns


def outcomes_of(language: Language, count: int) -> list[Fingerprinted]:
    drawn = synthetic.draw(np.random.default_rng(1), synthetic.prose(language), count)
    return [
        Fingerprinted(
            Story(1 + n, language, title="शब्द", author_id="7", published_at=1),
            Fingerprint(bytes(16), simhash.tobytes(), signature.tobytes(), 100, 100),
            f'"{n:032x}"',
        )
        for n, (simhash, signature) in enumerate(zip(drawn.simhashes, drawn.signatures, strict=True))
    ]


@pytest.mark.parametrize("language", SAMPLED)
def test_three_hundred_stories_show_the_skew_of_prose(language: Language) -> None:
    prose = synthetic.prose(language)
    profile = measure_profile(language, outcomes_of(language, 300))
    assert profile.signature_skew == pytest.approx(BAND_VALUES * prose.signature_collision(), rel=0.4)
    assert profile.simhash_skew == pytest.approx(BAND_VALUES * prose.simhash_collision(), rel=0.4)


def test_copies_do_not_count_as_skew() -> None:
    originals = outcomes_of(TAMIL, 300)
    with_copies = [*originals, *[originals[0]] * 100]
    assert measure_profile(TAMIL, with_copies).signature_skew == measure_profile(TAMIL, originals).signature_skew
    assert measure_profile(TAMIL, with_copies).fullest >= 0.25, "the fullest bucket must include copies"


def test_a_sample_shows_titles_ids_and_unreadable_pages() -> None:
    readable = outcomes_of(ODIA, 30)
    profile = measure_profile(ODIA, [*readable, *[Skipped(Story(9, ODIA), Skip.MISSING)] * 10])
    assert profile.signature_skew == TYPICAL[ODIA].signature_skew, "thirty stories are too few to measure skew"
    assert profile.readable == 0.75
    assert (profile.row.title, profile.row.author_id, profile.row.etag, profile.row.dates) == (12, 1, 16, 1)
    assert profile.row.highest_id == 30


def test_the_ledger_is_as_large_as_projected(tmp_path: Path) -> None:
    ids = (np.arange(20_000) * ID_STEP + FIRST_ID).tolist()
    with closing(connect(tmp_path / "l.db")) as db:
        fill(db, ids)
        title = db.execute("SELECT avg(length(CAST(title AS BLOB))) FROM stories").fetchone()[0]
        size = db.execute("SELECT page_count * page_size FROM pragma_page_count, pragma_page_size").fetchone()[0]
    row = StoryRow(highest_id=ids[-1], title=title)
    assert ledger_bytes(len(ids), 1.0, row) == pytest.approx(size, rel=0.05)


async def test_the_embedded_index_is_as_large_as_projected(tmp_path: Path) -> None:
    sizes = {HINDI: 40_000, TELUGU: 10_000}
    index = SqliteIndex(tmp_path / "i.db", Detection().bandings(LANGUAGES))
    await index.clear("l", "v", sizes)
    async for _ in index.build(pages_of(sizes), tmp_path):
        pass
    await index.close()
    projected = index_size(corpus_of(sizes), "sqlite").total
    assert projected == pytest.approx((tmp_path / "i.db").stat().st_size, rel=0.15)


@pytest.mark.parametrize("words", [2, 8])
def test_the_projected_index_of_titles_is_that_of_a_real_file(tmp_path: Path, words: int) -> None:
    rng = random.Random(words)
    letters = [chr(code) for code in range(0x0915, 0x0939)]
    vocabulary = ["".join(rng.choices(letters, k=rng.randint(2, 6))) for _ in range(50_000)]
    frequencies = list(accumulate(1 / rank for rank in range(1, len(vocabulary) + 1)))
    rows = [(n, " ".join(rng.choices(vocabulary, cum_weights=frequencies, k=words))) for n in range(1, 20_001)]
    with closing(TitleIndex(tmp_path / "titles", "a ledger")) as index:
        for first in range(0, len(rows), ROWS_AT_ONCE):
            batch = rows[first : first + ROWS_AT_ONCE]
            index.add(batch, index.position(), Position(batch[-1][0], 0))
    profile = replace(TYPICAL[HINDI], row=StoryRow(title=sum(len(title.encode()) for _, title in rows) / len(rows)))
    projected = title_index_bytes(Corpus({HINDI: len(rows)}, {HINDI: profile}, Detection()))
    assert projected == pytest.approx((tmp_path / "titles").stat().st_size, rel=0.5)
