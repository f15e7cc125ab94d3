"""The neighbours of a story are those with the nearest codes, in any language, and a search is recorded.

The samples of translated and retold stories: each pair is listed, of its kind, and long enough for two chunks.
"""

import csv
import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing

import numpy as np
import pytest
from neardup.config import Detection
from neardup.core.fingerprint.word_hashes import hash_passages
from neardup.core.text.chunks import cut_chunks
from neardup.core.text.extraction import Extraction
from neardup.core.text.html import extract_visible_text
from neardup.core.verify.alignment import NO_HASHES
from neardup.core.verify.scores import ComparedPair
from neardup.core.verify.tiers import RETOLD, TRANSLATED
from neardup.ledger import transaction
from neardup.meaning import search, vectors
from neardup.meaning.codes import scale_to_unit
from neardup.meaning.margins import UNFITTED, ExtremeValues, align_with_others, measure_background
from neardup.meaning.search import NOMINATED, CentredStory, Searched, compare
from neardup.meaning.vectors import Embedded, bind_to_model, connect
from neardup.records import Candidate, Kind, PairedStory

from tests.support.builders import text_of_words
from tests.support.languages import HINDI, TAMIL
from tests.support.paths import SAMPLES

SIZE, STORIES = 64, 130


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Iterator[sqlite3.Connection]:
    random = np.random.default_rng(4)
    with closing(connect(tmp_path_factory.mktemp("meaning") / "vectors")) as opened:
        bind_to_model(opened, "tiny", scale_to_unit(np.ones((1, SIZE), np.float32))[0], "ledger", 0)
        made = [
            Embedded(
                n - 10,
                (HINDI, TAMIL)[n % 2],
                b"",
                scale_to_unit(random.standard_normal((1 + n % 3, SIZE)).astype(np.float32)),
            )
            for n in range(STORIES)
        ]
        with transaction(opened):
            vectors.put(opened, made)
        vectors.fit_means(opened)
        while vectors.make_codes(opened):
            pass
        yield opened


def test_the_nearest_codes_of_each_language_are_nominated(
    db: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    code_of = {n: int.from_bytes(code) for n, code in db.execute("SELECT story_id, code FROM codes")}
    monkeypatch.setattr(search, "CODES_AT_ONCE", 31)
    found = search.nominate(db, [-10, 5, 77])
    for story, others in found.items():
        assert story not in others
        for even in (0, 1):  # the language
            distances = [(code_of[story] ^ code_of[other]).bit_count() for other in others if other % 2 == even]
            every = [other for other in code_of if other % 2 == even and other != story]
            expected = sorted((code_of[story] ^ code_of[other]).bit_count() for other in every)
            assert distances == expected[: len(distances)]
            assert len(distances) == NOMINATED + (story % 2 != even)


def test_candidates_are_as_alike_as_they_are_aligned(db: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "COMPARED_AT_ONCE", 2)
    monkeypatch.setattr(search, "PARTS_AHEAD", 3)
    candidates = search.nominate(db, range(1, 12))
    held = search.read_centred(db, range(-10, STORIES))
    for story, (language, by_language, backgrounds) in search.compare_all(db, candidates).items():
        assert language == held[story].language
        assert {other for some in by_language.values() for other in some} == set(candidates[story])
        for of_language, alike in by_language.items():
            for other, similarity in alike.items():
                assert held[other].language == of_language
                exact = align_with_others(held[story].chunks, held[other].chunks[None])
                assert similarity == pytest.approx(float(exact[0]), abs=1e-5)
            descending = sorted(alike.values(), reverse=True)
            assert backgrounds[of_language] == pytest.approx(measure_background(descending))


def test_reposts_of_a_translation_are_one_neighbour() -> None:
    random = np.random.default_rng(2)
    story, other, third = (scale_to_unit(random.standard_normal((2, SIZE)).astype(np.float32)) for _ in range(3))
    translation = scale_to_unit(story + 0.5 * other)
    alone = {1: CentredStory(TAMIL, translation), 2: CentredStory(TAMIL, other), 3: CentredStory(TAMIL, third)}
    reposts = {10 + n: CentredStory(TAMIL, scale_to_unit(translation + 0.01 * n)) for n in range(5)}
    assert compare(CentredStory(HINDI, story), alone).backgrounds == pytest.approx(
        compare(CentredStory(HINDI, story), alone | reposts).backgrounds
    )


def test_a_story_is_searched_for_once_and_again_after_a_fit_that_reaches_its_margin(db: sqlite3.Connection) -> None:
    assert len(search.read_unsearched(db, 1_000)) == STORIES
    assert search.read_distributions(db) == UNFITTED
    widest: list[dict[Kind, float]] = [{TRANSLATED: 0.2, RETOLD: 0.1}, {}, {TRANSLATED: 0.1}, {RETOLD: 0.3}]
    search.put_searched(db, [Searched(1 + n, {HINDI: 0.3} if n == 0 else {}, some) for n, some in enumerate(widest)])
    assert not {1, 2, 3, 4} & set(search.read_unsearched(db, 1_000))
    assert search.read_backgrounds(db, [1, 2, 5]) == {1: {HINDI: 0.3}, 2: {}}
    assert search.read_widest_margins(db, TRANSLATED) == [0.2, 0.1]
    assert search.read_widest_margins(db, RETOLD) == [0.1, 0.3]
    fitted = ExtremeValues(0.1, 0.01, 0.0)
    assert search.keep_fits(db, {TRANSLATED: fitted}, {TRANSLATED: 0.15, RETOLD: 0.3}) == 2
    assert search.read_distributions(db) == {TRANSLATED: fitted, RETOLD: UNFITTED[RETOLD]}
    assert {1, 2, 3, 4} & set(search.read_unsearched(db, 1_000)) == {1, 4}
    with transaction(db):
        vectors.put(db, [Embedded(3, HINDI, b"new", scale_to_unit(np.ones((1, SIZE), np.float32)))])
    vectors.make_codes(db)
    assert 3 in search.read_unsearched(db, 1_000), "a story with another text is searched for again"


FOLDER = SAMPLES / "meaning"


def test_each_pair_is_listed_and_long_enough() -> None:
    rows = {
        int(row["id"]): row["language"]
        for row in csv.DictReader((FOLDER / "manifest.csv").read_text(encoding="utf-8").splitlines())
    }
    pairs = [json.loads(line) for line in (FOLDER / "truth.jsonl").read_text(encoding="utf-8").splitlines()]
    assert sorted(story for pair in pairs for story in (pair["a"], pair["b"])) == sorted(rows)
    for pair in pairs:
        assert pair["kind"] == (RETOLD if rows[pair["a"]] == rows[pair["b"]] else TRANSLATED)
    for story, language in rows.items():
        page = (FOLDER / "stories" / language / f"{story}.html").read_text(encoding="utf-8")
        text = extract_visible_text(page, Extraction("article .story"))
        assert len(text.split()) >= 150, story
        assert len(cut_chunks(text)) >= 2, story


def test_a_common_passage_makes_no_copy_of_a_retold_story() -> None:
    prayer, own = ([f"{name}{n}".encode() for n in range(120)] for name in ("prayer", "own"))
    others = [f"other{n}".encode() for n in range(120)]
    a, b = text_of_words(prayer + own), text_of_words(prayer + others)
    common = hash_passages(text_of_words(prayer).word_hashes)
    sides = [
        PairedStory(n, HINDI, None, made.text_hash, made.simhash, made.signature, made.words, made.shingles)
        for n, made in enumerate((a.fingerprint, b.fingerprint), 1)
    ]
    pairs = [ComparedPair(Candidate(*sides), a, b)]
    assert search._find_not_copied(pairs, Detection(), {HINDI: NO_HASHES}) == []
    assert search._find_not_copied(pairs, Detection(), {HINDI: common}) == [(1, 2)]
