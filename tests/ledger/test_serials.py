"""Laws of serials in the ledger: what matches follows from the stories and their pairs, not from their order."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from neardup.config import Detection
from neardup.core.serials import Ranges
from neardup.core.verify.tiers import COPIED_WORDS, PASSAGE, SERIAL
from neardup.insights.what_if import compare_thresholds
from neardup.ledger import candidates, cases, flags, serials, stories, verdicts, verification
from neardup.pipeline.verifier import BEFORE_ALL
from neardup.records import Assessment, Candidate, Fingerprinted, Kind, Signals, Skip, Skipped, Story, Verdict

from tests.support.builders import commit, fingerprint_of, ledger_in_memory
from tests.support.languages import HINDI
from tests.support.sampling import count_examples

CHAPTERS = 5
Shared = dict[tuple[int, int], tuple[Kind | None, int]]  # kind and copied words of the pairs that are not missed by far
ORIGINAL, COPY = range(1, CHAPTERS + 1), range(11, 11 + CHAPTERS)
DRIPPED: Shared = {(n, n + 10): (None, 45) for n in ORIGINAL}


class Platform:
    """Two serials of CHAPTERS chapters, by two authors, of which the pairs share what is said."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self.db = db
        self.shared: Shared = {}
        self.texts = 0
        for author, ids in (("original", ORIGINAL), ("copy", COPY)):
            for place, story_id in enumerate(ids, 1):
                self.write(story_id, author, f"{author} भाग {place}", None, story_id)

    def write(self, story_id: int, author: str | None, title: str, series: str | None, time: int) -> None:
        """Add a story, or give it another text."""
        self.texts += 1
        commit(self.db, Fingerprinted(_story(story_id, author, title, series, time), _print(self.texts), None))
        self.shared = {pair: shared for pair, shared in self.shared.items() if story_id not in pair}

    def list_again(self, story_id: int, author: str | None, title: str, series: str | None, time: int) -> None:
        commit(self.db, Skipped(_story(story_id, author, title, series, time), Skip.UNCHANGED))

    def remove(self, story_id: int) -> None:
        commit(self.db, Skipped(_story(story_id, None, "", None, 1), Skip.EMPTY))

    def share(self, pairs: Shared) -> None:
        """Have these pairs verified, as what they share; what others share stays while their texts do."""
        self.shared = pairs | self.shared
        commit(self.db, pairs=[(b, a) for a, b in pairs])
        self._verify()

    def settle(self) -> None:
        """Do what the end of a run does."""
        while serials.refresh(self.db):
            self._verify()
        cases.refresh(self.db)

    def _verify(self) -> None:
        pending = candidates.list_pending(self.db, BEFORE_ALL, 100)
        verification.record(self.db, [(pair, self._assess(pair)) for pair in pending], "v")

    def _assess(self, pair: Candidate) -> Assessment | None:
        if (shared := self.shared.get((pair.a.id, pair.b.id))) is None:
            return None
        kind, words = shared
        return Assessment(kind, Signals(60, extra={COPIED_WORDS: words}))

    def seen(self) -> dict[str, list[Any]]:
        queries = {
            "chapters": "SELECT * FROM chapter_pairs ORDER BY a, b",
            "flags": "SELECT a, b, kind, status, case_id FROM flags WHERE status <> 'withdrawn' ORDER BY a, b",
            "near misses": "SELECT a, b, signals FROM candidates WHERE verified_at IS NOT NULL ORDER BY a, b",
            "cases": "SELECT case_id, kinds, flags, stories FROM cases ORDER BY case_id",
        }
        return {name: self.db.execute(query).fetchall() for name, query in queries.items()}

    def kinds(self) -> dict[tuple[int, int], Kind]:
        return {(a, b): kind for a, b, kind, *_ in self.seen()["flags"]}

    def ranges(self) -> list[tuple[Ranges, ...]]:
        """The ranges of the matches in all cases."""
        return [
            match.ranges
            for case_id, *_ in self.seen()["cases"]
            for match in serials.list_matches_of_case(self.db, case_id)
        ]


def _story(story_id: int, author: str | None, title: str, series: str | None, time: int) -> Story:
    return Story(story_id, HINDI, author_id=author, title=title, series_id=series, published_at=time)


def _print(text: int) -> Any:
    return fingerprint_of(text.to_bytes(16), words=300)


@pytest.fixture
def platform() -> Iterator[Platform]:
    with closing(ledger_in_memory()) as db:
        yield Platform(db)


def test_a_serial_keeps_its_number_in_ledgers() -> None:
    assert serials.hash_parts("series", "7", 77) == 5_176_390_780_978_406_668


def test_dripped_chapters_are_flags_of_one_case(platform: Platform) -> None:
    platform.share({pair: shared for pair, shared in DRIPPED.items() if pair[0] < 3})
    platform.settle()
    assert platform.kinds() == {}, "two chapters are no match"
    platform.share({pair: shared for pair, shared in DRIPPED.items() if pair[0] >= 3})
    platform.settle()
    assert platform.kinds() == dict.fromkeys(DRIPPED, SERIAL)
    [case] = platform.seen()["cases"]
    assert case == (11, f",{SERIAL},", CHAPTERS, 2 * CHAPTERS)
    [match] = serials.list_matches_of_case(platform.db, 11)
    assert (match.source["author_id"], match.copy["author_id"]) == ("original", "copy")
    assert match.ranges == (Ranges((1, 5), (1, 5)),)


def test_a_match_is_shown_until_too_few_chapters_are_left(platform: Platform) -> None:
    platform.share(DRIPPED)
    platform.settle()
    for left in (2, 1, 0):
        name, [match] = serials.list_matches_of_story(platform.db, 15)
        assert (name, match.ranges) == ("copy", (Ranges((1, 3 + left), (1, 3 + left)),))
        assert len(match.aligned) == 3 + left
        stories.forget(platform.db, 3 + left)
    assert serials.list_matches_of_story(platform.db, 15) == ("copy", []), "two chapters are no serial"
    for story_id in (1, 2):
        stories.forget(platform.db, story_id)
    assert serials.list_matches_of_story(platform.db, 15) == ("copy", [])
    assert serials.read_match_of_pair(platform.db, 1, 11) is None


def test_what_if_keeps_the_serials(platform: Platform) -> None:
    platform.share(DRIPPED | {(2, 12): (PASSAGE, 90)})
    platform.settle()
    stricter = compare_thresholds(platform.db, Detection(passage_words=100), 0, 2**62)["by_language"][HINDI]
    assert stricter[SERIAL] == {"flags": 4, "replayed": 5, "plus": 1, "minus": 0}
    assert stricter[PASSAGE] == {"flags": 1, "replayed": 0, "plus": 0, "minus": 1}


def test_flags_and_near_misses_of_two_serials_are_one_case(platform: Platform) -> None:
    """A chapter is flagged, one has another source besides, and one stands elsewhere."""
    platform.write(50, "third", "another", None, 1)
    platform.share(DRIPPED | {(2, 12): (PASSAGE, 200), (13, 50): (PASSAGE, 90), (1, 15): (PASSAGE, 80)})
    platform.settle()
    assert platform.kinds() == dict.fromkeys(DRIPPED, SERIAL) | dict.fromkeys([(2, 12), (13, 50), (1, 15)], PASSAGE)
    assert [flagged for _, _, flagged, _ in platform.seen()["cases"]] == [CHAPTERS + 2]


def test_a_serial_is_found_by_its_series_in_order_of_publication(platform: Platform) -> None:
    for place, story_id in enumerate(COPY):
        platform.list_again(story_id, "copy", f"{'abcde'[place]} tale", "77", 100 - place)
    platform.share({(6 - n, n + 10): (None, 45) for n in ORIGINAL})
    platform.settle()
    assert platform.ranges() == [(Ranges((1, 5), (1, 5)),)], "its last chapter was published first"
    for n in range(3):
        platform.write(60 + n, "copy", f"between {'xyz'[n]}", "77", 98)
    platform.settle()
    left = {(1, 15), (2, 14), (3, 13)}
    assert platform.kinds().keys() == left, "three new chapters stand between the third and the fourth"


def test_a_story_without_a_known_author_is_in_no_serial(platform: Platform) -> None:
    platform.write(99, None, "copy भाग 9", "77", 9)
    assert serials.list_matches_of_story(platform.db, 99) == (None, [])
    assert serials.list_matches_of_story(platform.db, 11) == ("copy", [])


@pytest.mark.parametrize(
    ("shared", "why"),
    [
        ({(n, n + 10): (None, 19) for n in ORIGINAL}, "too few words"),
        ({(n, 16 - n): (None, 45) for n in ORIGINAL}, "another order"),
        ({(a, b): (None, 45) for a in ORIGINAL for b in COPY}, "what all share"),
    ],
)
def test_other_near_misses_stay_what_they_are(platform: Platform, shared: Shared, why: str) -> None:
    platform.share(shared)
    platform.settle()
    assert platform.kinds() == {}, why
    assert len(platform.seen()["near misses"]) == len(shared)


def test_an_authors_own_serial_is_no_copy(platform: Platform) -> None:
    platform.share(DRIPPED)
    for place, story_id in enumerate(COPY, 1):
        platform.list_again(story_id, "original", f"copy {place}", None, story_id)
    platform.settle()
    assert platform.seen()["chapters"] == []


def test_a_verdict_outlives_a_new_alignment(platform: Platform) -> None:
    platform.share(DRIPPED)
    platform.settle()
    chosen = flags.read_pair(platform.db, 2, 12)
    assert chosen is not None
    ids = [chosen["flag_id"]]
    verdicts.decide(platform.db, ids, Verdict.PLAGIARISM, "", "Asha", verdicts.identify_state(platform.db, ids))
    platform.remove(13)
    platform.settle()
    assert platform.kinds().keys() == DRIPPED.keys() - {(3, 13)}, "one chapter may be left out"
    platform.remove(14)
    platform.settle()
    assert {row[:4] for row in platform.seen()["flags"]} == {(2, 12, SERIAL, "plagiarism")}, "1, 2 and 5 are no chain"


changes = st.one_of(
    st.tuples(
        st.sampled_from(["write", "list_again"]),
        st.sampled_from([*ORIGINAL, *COPY]),
        st.sampled_from(["original", "copy", None]),
        st.sampled_from(["novel 1", "novel 2", "novel 3", "tale"]),
        st.sampled_from([None, None, "77"]),
        st.integers(1, 4),
    ),
    st.tuples(st.just("remove"), st.sampled_from([*ORIGINAL, *COPY])),
    st.tuples(
        st.just("share"),
        st.dictionaries(
            st.sampled_from([(a, b) for a in ORIGINAL for b in COPY]),
            st.sampled_from([(None, 30), (None, 45), (None, 90), (PASSAGE, 100)]),
            max_size=3,
        ),
    ),
    st.just(("settle",)),
)


@settings(deadline=None, max_examples=count_examples(40))
@given(st.lists(changes, max_size=12))
def test_what_matches_follows_from_the_stories_and_their_pairs(steps: list[tuple[Any, ...]]) -> None:
    with closing(ledger_in_memory()) as db:
        platform = Platform(db)
        platform.share(DRIPPED)
        for operation, *values in steps:
            getattr(platform, operation)(*values)
        platform.settle()
        found = platform.seen()
        db.execute("DELETE FROM chapter_pairs")
        db.execute("INSERT INTO due_pairs SELECT a, b FROM flags UNION SELECT a, b FROM candidates")
        db.execute("INSERT INTO due_flags SELECT flag_id FROM flags WHERE true ON CONFLICT DO NOTHING")
        platform.settle()
        assert platform.seen() == found
        flagged = {row[:2] for row in found["flags"] if row[2] == SERIAL}
        aligned = {row[:2] for row in found["chapters"] if row[7]}
        assert flagged == {pair for pair in aligned if platform.shared.get(pair, (PASSAGE,))[0] is None}
