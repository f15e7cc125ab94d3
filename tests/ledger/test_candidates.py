"""Laws: a verified candidate becomes a flag or a near miss, or is dropped; edits and nominations bring it back."""

import sqlite3
from pathlib import Path

import pytest
from neardup.config import Detection
from neardup.config.section import read
from neardup.core.columns import Outcomes
from neardup.core.verify.tiers import EXACT, PARTIAL, SIMILAR
from neardup.insights.what_if import compare_thresholds
from neardup.ledger import candidates, connect, flags, passages, stories, transaction, verdicts, verification
from neardup.pipeline.verifier import BEFORE_ALL
from neardup.records import Fingerprinted, Signals, Skip, Skipped, Story, Verdict

from tests.support.builders import fingerprint_of, flag_pair, matches, verify_pending
from tests.support.languages import HINDI

ALIKE = bytes(64)
LESS = bytes(16) + b"\x01" * 48  # agrees with ALIKE in a quarter of the rows


def nominate(db: sqlite3.Connection, story_id: int, ids: list[int], most: int = 50) -> int:
    with transaction(db):
        return candidates.nominate(db, candidates.Matches(story_id, ids, most))


def waiting(db: sqlite3.Connection) -> list[tuple[int, int]]:
    return [(pair.a.id, pair.b.id) for pair in candidates.list_pending(db, BEFORE_ALL, 99)]


@pytest.fixture
def db(tmp_path: Path) -> sqlite3.Connection:
    return connect(tmp_path / "ledger.db")


def commit(db: sqlite3.Connection, *signatures: bytes | None, first: int = 0) -> None:
    """Stories far apart by their SimHashes, with these signatures; each pair nominated."""
    made = [
        Fingerprinted(Story(n, HINDI), fingerprint_of((0xFFFF << 16 * n).to_bytes(16), signature), None)
        for n, signature in enumerate(signatures, first)
    ]
    pairs = {(story.story.id, other.story.id) for story in made for other in made if story.story.id < other.story.id}
    stories.commit(db, stories.Batch(Outcomes.of(made), matches(pairs), 1, {}, None))


def test_near_miss_is_recorded_until_a_story_changes(db: sqlite3.Connection) -> None:
    commit(db, ALIKE, LESS)
    verify_pending(db)
    assert (candidates.count_pending(db), verification.count_near_misses(db)) == (0, 1)
    [near_miss] = verification.list_verified_pairs(db, 0, 2**62)
    assert near_miss.kind is None and 0.2 < (near_miss.signals.jaccard or 0) < 0.3
    commit(db, ALIKE, first=1)
    assert verification.count_near_misses(db) == 0


def test_pair_with_too_little_in_common_is_not_recorded(db: sqlite3.Connection) -> None:
    commit(db, ALIKE, bytes(8) + b"\x01" * 56, None)
    verify_pending(db)
    assert (candidates.count_pending(db), verification.count_near_misses(db)) == (0, 0)
    assert list(flags.select(db)) == []


def test_near_misses_are_verified_again_and_flags_are_not(db: sqlite3.Connection) -> None:
    commit(db, ALIKE, ALIKE, LESS)
    verify_pending(db)
    assert [row["kind"] for row in flags.select(db)] == ["similar"]
    db.execute("UPDATE flags SET estimated = 0")
    nominate(db, 0, [1, 2])
    assert waiting(db) == [(0, 2)]


def test_a_pair_is_not_dropped_by_what_was_common_when_it_was_read(db: sqlite3.Connection) -> None:
    commit(db, ALIKE, ALIKE)
    [pair], revision = candidates.list_pending(db, BEFORE_ALL, 9), passages.read_common_revision(db)
    passages.note_common_change(db)
    verification.record(db, [(pair, None)], "v", revision)
    assert waiting(db) == [(0, 1)]


def test_cap_leaves_out_no_flagged_pair(db: sqlite3.Connection) -> None:
    commit(db, ALIKE, ALIKE, ALIKE)
    verify_pending(db)
    assert nominate(db, 0, [1, 2], most=1) == 0


def test_estimated_flag_is_verified_again_and_may_be_withdrawn(db: sqlite3.Connection) -> None:
    commit(db, ALIKE, ALIKE)
    verify_pending(db)
    assert [row["estimated"] for row in flags.select(db)] == [1]
    nominate(db, 0, [1])
    [pair] = candidates.list_pending(db, BEFORE_ALL, 9)
    verification.record(db, [(pair, None)], "v")
    assert list(flags.select(db)) == [] == waiting(db)


def due(db: sqlite3.Connection) -> list[candidates.CrowdedStory]:
    return candidates.list_due_for_selection(db, 0, 99)


def test_matches_are_selected_again_when_a_better_one_comes_or_one_leaves(db: sqlite3.Connection) -> None:
    commit(db, *[None] * 8)
    db.executescript("DELETE FROM candidates; DELETE FROM crowded_stories")
    with transaction(db):
        assert candidates.nominate(db, candidates.Matches(5, [3, 0], 2, left_out=2)) == 2
    assert nominate(db, 1, [5], most=2) == 1, "whether it is better is not known yet"
    assert waiting(db) == [(0, 5), (3, 5)]
    assert [story.side.id for story in due(db)] == [5]
    candidates.select_again(db, due(db), [candidates.Matches(5, [1, 3], 2, [1, 3], left_out=3)])
    assert waiting(db) == [(1, 5), (3, 5)] and not due(db)
    asked = due(db)
    stories.forget(db, 3)
    assert [story.side.id for story in due(db)] == [5]
    candidates.select_again(db, asked, [])
    candidates.select_again(db, due(db), [candidates.Matches(5, [1, 3], 2, left_out=2)])
    assert due(db), "it was looked up before the other left"
    assert nominate(db, 6, [99], most=2) == 0, "an unknown story is not nominated"


def test_matches_that_came_to_nothing_are_counted_all_the_same(db: sqlite3.Connection) -> None:
    commit(db, *[None] * 8)
    db.executescript("DELETE FROM candidates; DELETE FROM crowded_stories")
    left_out = []
    for story_id in range(4):
        left_out.append(nominate(db, story_id, [7], most=4))
        verify_pending(db)
    assert left_out == [0, 0, 1, 1], "a story may have had half of its matches from the beginning"
    assert [story.side.id for story in due(db)] == [7]


def test_a_pair_with_too_little_in_common_keeps_its_place_among_many(db: sqlite3.Connection) -> None:
    commit(db, ALIKE, bytes(8) + b"\x01" * 56, None)
    with transaction(db):
        candidates.nominate(db, candidates.Matches(2, [0], 1, left_out=1))
    verify_pending(db)
    assert (candidates.count_pending(db), verification.count_near_misses(db)) == (0, 0)
    assert list(verification.list_verified_pairs(db, 0, 2**62)) == []
    stories.forget(db, 0)
    assert [story.side.id for story in due(db)] == [2], "another match takes its place"


def test_matches_are_selected_again_if_one_of_them_changes_in_the_same_batch(db: sqlite3.Connection) -> None:
    commit(db, *[None] * 4)
    edited = (Fingerprinted(Story(n, HINDI), fingerprint_of(bytes([n] * 16)), None) for n in (1, 4, 5))
    outcomes = Outcomes.of([*edited, Skipped(Story(0, HINDI), Skip.EMPTY)])
    of_changed, of_removed, of_others = (
        candidates.Matches(story_id, [match], 1, left_out=1) for story_id, match in ((4, 1), (5, 0), (3, 2))
    )
    stories.commit(db, stories.Batch(outcomes, [of_changed, of_removed, of_others], 1, {}, None))
    assert [story.side.id for story in due(db)] == [4, 5], "these matches left others out, and are none any more"


def test_pending_candidates_are_read_in_pages(db: sqlite3.Connection) -> None:
    commit(db, *[ALIKE] * 6)
    pages, after = [], BEFORE_ALL
    while page := candidates.list_pending(db, after, 4):
        pages += [(pair.a.id, pair.b.id) for pair in page]
        after = pages[-1]
    assert pages == [(a, b) for a in range(6) for b in range(a + 1, 6)]


def test_what_if_reports_flags_of_other_thresholds(db: sqlite3.Connection) -> None:
    commit(db, ALIKE, ALIKE, LESS)
    verify_pending(db)
    everything = (0, 2**62)
    same = compare_thresholds(db, Detection(), *everything)
    assert (same["pairs"], same["flags"], same["replayed"]) == (3, 1, 1)
    looser = compare_thresholds(db, Detection(containment=0.35), *everything)
    assert looser["by_language"] == {
        HINDI: {
            SIMILAR: {"flags": 1, "replayed": 1, "plus": 0, "minus": 0},
            PARTIAL: {"flags": 0, "replayed": 2, "plus": 2, "minus": 0},
        }
    }
    own = read(Detection, {"jaccard": 0.2, "HINDI": {"jaccard": 0.9}})
    assert compare_thresholds(db, own, *everything)["replayed"] == 1, "a language's own thresholds count"
    assert compare_thresholds(db, Detection(), 0, 1)["pairs"] == 0, "only what was judged in the period"


def test_what_if_reports_verdicts_lost_and_spared(db: sqlite3.Connection) -> None:
    scores_of = {Verdict.PLAGIARISM: (0.9, 0.4), Verdict.QUOTATION: (0.45, 0.4), Verdict.NOT_SIMILAR: (0.42, 0.41)}
    for place, (verdict, scores) in enumerate(scores_of.items()):
        for n, jaccard in enumerate(scores):
            first = 10 * place + 2 * n + 1
            alike = Signals(64, False, jaccard, jaccard, jaccard, 9)
            flag_pair(db, 1000 * first, 1000 * (first + 1), SIMILAR, signals=alike)
            [flag_id] = db.execute("SELECT max(flag_id) FROM flags").fetchone()
            verdicts.decide(db, [flag_id], verdict, "", "Asha", verdicts.identify_state(db, [flag_id]))
    everything = (0, 2**62)
    loose, strict, stricter = (
        compare_thresholds(db, Detection(jaccard=score, containment=score), *everything)["verdicts"]
        for score in (0.4, 0.43, 0.5)
    )
    assert loose == {"real": 4, "lost": {}, "not_similar": 2, "spared": 0}
    assert strict == {"real": 4, "lost": {"plagiarism": 1, "quotation": 1}, "not_similar": 2, "spared": 2}
    assert stricter == {"real": 4, "lost": {"plagiarism": 1, "quotation": 2}, "not_similar": 2, "spared": 2}


def test_nomination_and_cluster_cost_is_independent_of_all_flags(db: sqlite3.Connection) -> None:
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
        assert flags.find_cluster_around(db, 0) is not None
        db.set_progress_handler(None, 0)
        verify_pending(db)
        return taken

    few = steps()
    for n in range(10, 2010, 2):
        flag_pair(db, n, n + 1, EXACT)
    assert steps() < 2 * few, "a query reads all flags: see its plan"
