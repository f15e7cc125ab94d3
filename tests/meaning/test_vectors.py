"""The vectors on record: what is written is held, the queue has its order, and codes follow the means."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from neardup.errors import Fatal, Misuse, VectorsDamaged
from neardup.ledger import transaction
from neardup.ledger.versions import Numbered
from neardup.meaning import search, vectors
from neardup.meaning.codes import Vectors, compute_codes, scale_to_unit
from neardup.meaning.vectors import TABLES, Embedded, bind_to_model, connect
from neardup.records import Language

from tests.support.languages import HINDI, TAMIL

SIZE = 64
PROBE = scale_to_unit(np.ones((1, SIZE), np.float32))[0]


@pytest.fixture
def db(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    with closing(connect(tmp_path / "vectors")) as opened:
        bind_to_model(opened, "tiny", PROBE, "ledger", 0)
        yield opened


def random_vectors(seed: int, n: int) -> Vectors:
    random = np.random.default_rng(seed)
    return scale_to_unit((random.standard_normal((n, SIZE)) + 2 * random.standard_normal(SIZE)).astype(np.float32))


def put(db: sqlite3.Connection, *made: Embedded) -> None:
    with transaction(db):
        vectors.put(db, made)


def make_all_codes(db: sqlite3.Connection) -> None:
    vectors.fit_means(db)
    vectors.fit_directions(db)
    while vectors.make_codes(db):
        pass


def stories(language: Language, n: int, first: int = 0, seed: int = 1) -> list[Embedded]:
    return [Embedded(first + i, language, b"%d" % i, random_vectors(seed + i, 1 + i % 3)) for i in range(n)]


def test_what_is_written_is_held_and_waits_no_more(db: sqlite3.Connection) -> None:
    vectors.enqueue(db, [Numbered(1, 1), Numbered(2, 2)])
    put(db, Embedded(1, HINDI, b"hash", random_vectors(1, 3)))
    assert vectors.read_held(db, [1, 2]) == {1: (HINDI, b"hash")}
    assert vectors.count_waiting(db) == 1
    vectors.remove(db, [1, 2])
    assert (vectors.read_held(db, [1]), vectors.count_waiting(db)) == ({}, 0)


@given(st.sets(st.integers(-20, 20), max_size=30), st.integers(1, 7))
def test_the_queue_gives_works_first_then_the_latest_versions(ids: set[int], limit: int) -> None:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        for statement in TABLES.split(";\n")[:-1]:
            db.execute(statement)
        vectors.enqueue(db, [Numbered(story_id, 100 + n) for n, story_id in enumerate(sorted(ids))])
        taken, place = list[int](), vectors.QUEUE_START
        while some := vectors.read_waiting(db, place, limit):
            assert len(some) <= limit
            taken += [story.story_id for story in some]
            place = some[-1].place
    assert taken == sorted((story for story in ids if story < 0), reverse=True) + sorted(
        (story for story in ids if story >= 0), reverse=True
    )


def test_a_day_adds_up(db: sqlite3.Connection) -> None:
    for seconds, texts in ((1.5, 3), (2.0, 4)):
        with transaction(db):
            vectors.add_spending(db, "2026-01-01", seconds, texts)
    assert vectors.read_spending(db, "2026-01-01") == (3.5, 7)
    assert vectors.read_spending(db, "2026-01-02") == (0.0, 0)


def test_codes_are_those_of_the_centred_vectors(db: sqlite3.Connection) -> None:
    made = [*stories(HINDI, 20), *stories(TAMIL, 5, first=100, seed=50)]
    put(db, *made)
    make_all_codes(db)
    centring = vectors.read_centring(db)
    for story in made:
        code = np.frombuffer(db.execute("SELECT code FROM codes WHERE story_id = ?", (story.story_id,)).fetchone()[0])
        exact = compute_codes(vectors.compute_story_vector(story.chunks, story.language, centring)[None])
        assert np.bitwise_count(code.view(np.uint64) ^ exact[0]).sum() <= 2, "8 bits change at most the smallest signs"


def test_means_follow_the_corpus_while_it_is_small(db: sqlite3.Connection) -> None:
    put(db, *stories(HINDI, 10))
    assert vectors.fit_means(db) == [HINDI]
    assert vectors.fit_means(db) == [], "nothing has grown"
    put(db, *stories(HINDI, 4, first=10))
    assert vectors.fit_means(db) == [], "it has not grown enough"
    put(db, *stories(HINDI, 10, first=20))
    assert vectors.fit_means(db) == [HINDI]


def test_a_new_mean_makes_all_codes_of_its_language_again(db: sqlite3.Connection) -> None:
    put(db, *stories(HINDI, 10), *stories(TAMIL, 10, first=100))
    make_all_codes(db)
    put(db, *stories(HINDI, 10, first=10, seed=30))
    vectors.fit_means(db)
    missing = db.execute("SELECT language, count(*) FROM codes WHERE code IS NULL GROUP BY language").fetchall()
    assert missing == [(HINDI, 20)]


def test_new_directions_make_all_codes_again(db: sqlite3.Connection) -> None:
    put(db, *stories(HINDI, 60), *stories(TAMIL, 60, first=100))
    make_all_codes(db)
    assert len(vectors.read_centring(db).directions) == 2
    assert not vectors.fit_directions(db), "nothing has grown"
    put(db, *stories(HINDI, 61, first=200))
    assert vectors.fit_directions(db)
    assert len(vectors.read_centring(db).directions) == 3
    assert db.execute("SELECT count(*) FROM codes WHERE code IS NOT NULL").fetchone() == (0,)


@pytest.mark.parametrize("read", [vectors.make_codes, lambda db: search.read_centred(db, [3])])
def test_a_flipped_bit_is_said(db: sqlite3.Connection, read: Callable[[sqlite3.Connection], object]) -> None:
    """SQLite finds damaged pages by their structure alone; the vectors of one story are then made again."""
    put(db, *stories(HINDI, 5))
    [chunks] = db.execute("SELECT chunks FROM vectors WHERE story_id = 3").fetchone()
    flipped = bytes([chunks[0] ^ 1]) + chunks[1:]
    db.execute("UPDATE vectors SET chunks = ? WHERE story_id = 3", (flipped,))
    with pytest.raises(VectorsDamaged, match="story 3 are damaged: the next `neardup embed` makes them again"):
        read(db)
    vectors.begin_again(db, 3)
    read(db)
    assert (vectors.count_waiting(db), len(vectors.read_held(db, range(5)))) == (1, 4)


def test_a_file_of_another_release_is_refused(tmp_path: Path) -> None:
    with closing(connect(tmp_path / "vectors")) as opened:
        opened.execute("PRAGMA user_version = 1")
    with pytest.raises(Misuse, match="of another release: move the file away"):
        connect(tmp_path / "vectors")


def test_vectors_of_another_model_are_refused(db: sqlite3.Connection) -> None:
    bind_to_model(db, "tiny", PROBE, "ledger", 0)
    for name, probe, ledger_id, why in (
        ("other", PROBE, "ledger", "of the model tiny, not other"),
        ("tiny", -PROBE, "ledger", "another model now"),
        ("tiny", PROBE[:32], "ledger", "another model now"),
        ("tiny", PROBE, "another", "another ledger"),
    ):
        with pytest.raises(Misuse, match=why):
            bind_to_model(db, name, probe, ledger_id, 0)


def test_a_damaged_file_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "vectors").write_bytes(b"no database" * 1000)
    with pytest.raises(Fatal, match="are damaged: move the file away"):
        connect(tmp_path / "vectors")
