"""Law of drawn stories: each is on record, of its language and of the wanted length, and there are enough of them."""

import pytest
from neardup.ledger import self_checks
from neardup.records import Fingerprinted, Story

from tests.support.builders import commit, fingerprint_of, ledger_in_memory
from tests.support.languages import HINDI, ODIA


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
