"""Laws of self-checks: what is drawn, what is summed, and when a recall is lower than in the month before."""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from neardup.ledger import self_checks
from neardup.ledger.self_checks import ALL, KEPT_MS, MONTH_MS, Measure, Recall, Trial
from neardup.records import Fingerprinted, Story

from tests.support.builders import commit, fingerprint_of, ledger_in_memory
from tests.support.languages import HINDI, ODIA, TAMIL
from tests.support.sampling import count_examples

DAY_MS = 24 * 3_600_000
NOW = 2_000 * DAY_MS
STORIES, EDITS = 20, 5

tries = st.lists(
    st.builds(Trial, st.sampled_from([HINDI, TAMIL]), st.integers(1, 4), st.sampled_from(["a", "b"]), st.booleans())
)


@settings(max_examples=count_examples(25))
@given(tries)
def test_each_copy_counts_once_in_each_sum(tried: list[Trial]) -> None:
    sums = {(recall.language, recall.subject): recall for recall in self_checks.sum_recalls(tried)}
    for (language, subject), measure in sums.items():
        own = [t for t in tried if language in (ALL, t.language) and subject in (ALL, t.subject)]
        assert (measure.found, measure.total) == (sum(t.found for t in own), len(own))
        assert measure.stories == len({t.story_id for t in own})
        assert 0 <= measure.stories_found <= measure.stories
    assert (ALL, ALL) in sums or not tried


def night(rng: Random, lost: str | None = None, recall: float = 0.97) -> list[Recall]:
    """Canaries of three languages: all copies of a story are found or missed together, those of `lost` are missed."""
    tried = []
    for first, language in enumerate((HINDI, ODIA, TAMIL)):
        for story in range(first * STORIES, (first + 1) * STORIES):
            found = rng.random() < recall and language != lost
            tried += [Trial(language, story, f"edit {n}", found) for n in range(EDITS)]
    return self_checks.sum_recalls(tried)


@pytest.mark.parametrize("lost", [None, ODIA])
def test_only_a_clear_drop_is_lower_than_the_month_before(lost: str | None) -> None:
    db, rng = ledger_in_memory(), Random(1)
    for n in range(30):
        self_checks.record_recalls(db, Measure.CANARY, NOW - (30 - n) * DAY_MS, night(rng))
    self_checks.record_recalls(db, Measure.CANARY, NOW, night(rng, lost))
    measured = self_checks.read_latest_recalls(db, Measure.CANARY)
    assert measured is not None
    lower = {(measure.recall.language, measure.recall.subject) for measure in measured[1] if measure.is_lower}
    if lost is None:
        assert lower == set()
    else:
        assert (ODIA, ALL) in lower
        assert not {language for language, _ in lower} & {HINDI, TAMIL}


def test_older_measurements_and_other_measures_are_left_out() -> None:
    db, few = ledger_in_memory(), [Recall(HINDI, ALL, 1, 20, 1, 20)]
    self_checks.record_recalls(
        db, Measure.CANARY, NOW - MONTH_MS - 1, [Recall(HINDI, ALL, 20_000, 20_000, 20_000, 20_000)]
    )
    self_checks.record_recalls(db, Measure.CANARY, NOW, few)
    measured = self_checks.read_latest_recalls(db, Measure.CANARY)
    assert measured is not None
    [only] = measured[1]
    assert (only.recall, only.month.low, only.month.high) == (few[0], 0, 1)
    assert self_checks.read_latest_recalls(db, Measure.AUDIT) is None
    self_checks.record_recalls(db, Measure.CANARY, NOW + KEPT_MS, few)
    assert db.execute("SELECT count(*) FROM recalls").fetchone() == (2,), "old measurements are not dropped"


@pytest.mark.parametrize("drawn_at_once", [2_000, 16], ids=["all", "at random"])
def test_enough_stories_of_each_language_are_drawn(drawn_at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("neardup.ledger.self_checks.DRAWN_AT_ONCE", drawn_at_once)
    db = ledger_in_memory()
    for n in range(1, 41):
        language, words = (ODIA if n % 4 == 0 else HINDI), (10 if n % 2 else 100)
        text = fingerprint_of(n.to_bytes(16), words=words)
        commit(db, Fingerprinted(Story(n, language, path=f"{n}.html"), text, None))
    commit(db, Fingerprinted(Story(-5, HINDI), fingerprint_of(b"w" * 16), None))
    drawn = self_checks.draw_stories(db, 3, range(50, 200))
    assert {language: len(stories) for language, stories in drawn.items()} == {HINDI: 3, ODIA: 3}
    for language, stories in drawn.items():
        assert len({story.id for story in stories}) == 3
        for story in stories:
            assert story == Story(story.id, language, f"{story.id}.html")
            assert story.id > 0, "works are left out"
            assert story.id % (4 if language == ODIA else 2) == 0, "a story of another language or length"


@given(st.permutations(range(6)), st.integers(1, 4), st.integers(0, 7), st.integers(3, 6))
def test_the_latest_stories_are_drawn(written: list[int], at_once: int, since: int, most: int) -> None:
    """The stories become known in the order of their writing, each a millisecond after the one before."""
    db = ledger_in_memory()
    for time, story_id in enumerate(written):
        commit(db, Fingerprinted(Story(story_id, HINDI), fingerprint_of(story_id.to_bytes(16)), None))
        db.execute("UPDATE stories SET known_since = ? WHERE id = ?", (time, story_id))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(self_checks, "ROWS_AT_ONCE", at_once)
        drawn = self_checks.draw_latest(db, since, most)
    assert len(drawn) == len(set(drawn)) == min(most, max(len(written) - since, 0))
    assert set(drawn) <= set(written[since:])
