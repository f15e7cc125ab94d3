"""What is judged leaves the pending candidates, as a flag, as a near miss or for good; and comes back when it must."""

import sqlite3
from pathlib import Path

import pytest
from neardup.config import Detection
from neardup.insights.what_if import replay
from neardup.ledger import candidates, clusters, connect, flags, stories, transaction, verdicts
from neardup.pipeline.verifier import BEFORE_ALL
from neardup.records import Fingerprinted, Kind, Language, Scores, Story, Verdict

from tests.support.builders import fingerprint_of, flag_pair, matches, verify_pending

ALIKE = bytes(64)
LESS = bytes(16) + b"\x01" * 48  # agrees with ALIKE in a quarter of the rows


def nominate(db: sqlite3.Connection, story_id: int, ids: list[int], most: int = 50) -> int:
    with transaction(db):
        return candidates.nominate(db, candidates.Matches(story_id, ids, most))


def waiting(db: sqlite3.Connection) -> list[tuple[int, int]]:
    return [(pair.a.id, pair.b.id) for pair in candidates.pending(db, BEFORE_ALL, 99)]


@pytest.fixture
def db(tmp_path: Path) -> sqlite3.Connection:
    return connect(tmp_path / "ledger.db")


def commit(db: sqlite3.Connection, *signatures: bytes | None, first: int = 0) -> None:
    """Stories far apart by their SimHashes, with these signatures; each pair nominated."""
    made = [
        Fingerprinted(Story(n, Language.HINDI), fingerprint_of((0xFFFF << 16 * n).to_bytes(16), signature), None)
        for n, signature in enumerate(signatures, first)
    ]
    pairs = {(one.story.id, other.story.id) for one in made for other in made if one.story.id < other.story.id}
    stories.commit(db, stories.Batch(made, matches(pairs), 1, {}, None))


def test_a_near_miss_is_kept_until_a_story_of_it_changes(db: sqlite3.Connection) -> None:
    commit(db, ALIKE, LESS)
    verify_pending(db)
    assert (candidates.pending_count(db), candidates.near_miss_count(db)) == (0, 1)
    [near_miss] = candidates.scored(db, 0, 2**62)
    assert near_miss.kind is None and near_miss.scores is not None and 0.2 < near_miss.scores.jaccard < 0.3
    commit(db, ALIKE, first=1)
    assert candidates.near_miss_count(db) == 0


def test_what_has_too_little_in_common_is_not_kept(db: sqlite3.Connection) -> None:
    commit(db, ALIKE, bytes(8) + b"\x01" * 56, None)
    verify_pending(db)
    assert (candidates.pending_count(db), candidates.near_miss_count(db)) == (0, 0)
    assert list(flags.select(db)) == []


def test_what_is_flagged_is_not_judged_again_and_a_near_miss_is(db: sqlite3.Connection) -> None:
    commit(db, ALIKE, ALIKE, LESS)
    verify_pending(db)
    assert [row["kind"] for row in flags.select(db)] == ["similar"]
    db.execute("UPDATE flags SET estimated = 0")
    nominate(db, 0, [1, 2])
    assert waiting(db) == [(0, 2)]


def test_a_pair_that_is_flagged_is_not_left_out_by_a_limit_that_is_reached(db: sqlite3.Connection) -> None:
    commit(db, ALIKE, ALIKE, ALIKE)
    verify_pending(db)
    assert nominate(db, 0, [1, 2], most=1) == 0


def test_an_estimated_flag_is_judged_again_and_withdrawn_where_it_does_not_hold(db: sqlite3.Connection) -> None:
    commit(db, ALIKE, ALIKE)
    verify_pending(db)
    assert [row["estimated"] for row in flags.select(db)] == [1]
    nominate(db, 0, [1])
    [pair] = candidates.pending(db, BEFORE_ALL, 9)
    flags.decide(db, [(pair, None)], "v")
    assert list(flags.select(db)) == [] == waiting(db)


def test_neither_side_comes_by_more_than_its_matches_and_none_goes_without(db: sqlite3.Connection) -> None:
    commit(db, *[None] * 8)
    db.execute("DELETE FROM candidates")
    assert nominate(db, 0, [1, 2, 3], most=2) == 1
    assert nominate(db, 4, [0, 1, 2], most=2) == 1, "0 is full"
    assert nominate(db, 5, [0, 1, 2], most=2) == 2, "all are full: the best is joined alone"
    assert waiting(db) == [(0, 1), (0, 2), (0, 5), (1, 4), (2, 4)]
    assert nominate(db, 5, [0, 1], most=2) == 2, "again changes nothing"
    assert nominate(db, 6, [99], most=2) == 0, "who is not in the ledger is not nominated"
    assert len(waiting(db)) == 5


def test_pending_candidates_are_read_in_pages(db: sqlite3.Connection) -> None:
    commit(db, *[ALIKE] * 6)
    pages, after = [], BEFORE_ALL
    while page := candidates.pending(db, after, 4):
        pages += [(pair.a.id, pair.b.id) for pair in page]
        after = pages[-1]
    assert pages == [(a, b) for a in range(6) for b in range(a + 1, 6)]


def test_replay_says_what_other_thresholds_would_have_flagged(db: sqlite3.Connection) -> None:
    commit(db, ALIKE, ALIKE, LESS)
    verify_pending(db)
    everything = (0, 2**62)
    same = replay(db, Detection(), *everything)
    assert (same["pairs"], same["flags"], same["replayed"]) == (3, 1, 1)
    looser = replay(db, Detection(containment=0.35), *everything)
    assert looser["by_language"] == {
        Language.HINDI: {
            Kind.SIMILAR: {"flags": 1, "replayed": 1, "plus": 0, "minus": 0},
            Kind.PARTIAL: {"flags": 0, "replayed": 2, "plus": 2, "minus": 0},
        }
    }
    own = Detection.model_validate({"jaccard": 0.2, "HINDI": {"jaccard": 0.9}})
    assert replay(db, own, *everything)["replayed"] == 1, "a language's own thresholds count"
    assert replay(db, Detection(), 0, 1)["pairs"] == 0, "only what was judged in the period"


def test_replay_says_what_moderators_would_have_lost_and_been_spared(db: sqlite3.Connection) -> None:
    said = {
        Verdict.PLAGIARISM: (0.9, 0.4),
        Verdict.QUOTATION: (0.45, 0.4),
        Verdict.NOT_SIMILAR: (0.42, 0.41),
    }
    for place, (verdict, scores) in enumerate(said.items()):
        for n, jaccard in enumerate(scores):
            one = 10 * place + 2 * n + 1
            alike = Scores(jaccard, jaccard, jaccard, 9)
            flag_pair(db, 1000 * one, 1000 * (one + 1), Kind.SIMILAR, scores=alike, bits=64)
            [flag_id] = db.execute("SELECT max(flag_id) FROM flags").fetchone()
            verdicts.judge(db, [flag_id], verdict, "", "Asha", verdicts.state(db, [flag_id]))
    everything = (0, 2**62)
    loose, strict, stricter = (
        replay(db, Detection(jaccard=score, containment=score), *everything)["verdicts"] for score in (0.4, 0.43, 0.5)
    )
    assert loose == {"real": 4, "lost": {}, "not_similar": 2, "spared": 0}
    assert strict == {"real": 4, "lost": {"plagiarism": 1, "quotation": 1}, "not_similar": 2, "spared": 2}
    assert stricter == {"real": 4, "lost": {"plagiarism": 1, "quotation": 2}, "not_similar": 2, "spared": 2}


def test_what_a_nomination_and_a_cluster_cost_does_not_grow_with_the_flags(db: sqlite3.Connection) -> None:
    commit(db, ALIKE, ALIKE, ALIKE)
    verify_pending(db)

    def steps() -> int:
        """Of SQLite's machine, in hundreds, to nominate one pair and to find a cluster."""
        taken = 0

        def count() -> int:
            nonlocal taken
            taken += 1
            return 0

        db.set_progress_handler(count, 100)
        nominate(db, 0, [1, 2])
        assert clusters.around(db, 0) is not None
        db.set_progress_handler(None, 0)
        verify_pending(db)
        return taken

    few = steps()
    for n in range(10, 2010, 2):
        flag_pair(db, n, n + 1, Kind.EXACT)
    assert steps() < 2 * few, "a query reads all flags: see its plan"
