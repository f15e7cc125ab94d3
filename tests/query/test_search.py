"""Laws of the search in titles: it finds the stories whose present titles have all the words, in every script, and no
others, whatever was listed again, edited or removed, and whatever happened to the file of the index.
"""

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing, contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from neardup.core.languages import LANGUAGES
from neardup.core.text.normalize import tokenize
from neardup.index.words import WordIndex
from neardup.query.search import TitleSearch
from neardup.records import Fingerprinted, Language, Skip, Skipped, Story

from tests.support.builders import commit, fingerprint_of, ledger_in_memory
from tests.support.languages import HINDI, TEXTS
from tests.support.sampling import count_examples

WORDS = ["कहानी", "क़िस्सा", "Story", "ஶ்ரீ", "1984", "la"]
names = st.none() | st.lists(st.sampled_from(WORDS), min_size=1, max_size=3).map(" ".join)
steps = st.lists(
    st.tuples(st.sampled_from(["edit", "list", "remove", "search", "damage", "restore"]), st.integers(1, 4), names),
    max_size=12,
)
texts = count(1)


def reading(db: sqlite3.Connection) -> Callable[..., Awaitable[Any]]:
    async def read(work: Callable[..., Any], *args: Any) -> Any:
        return work(db, *args)

    return read


@contextmanager
def searching(db: sqlite3.Connection, path: Path) -> Iterator[TitleSearch]:
    index = WordIndex(path, "a ledger")
    try:
        yield TitleSearch(index, reading(db))
    finally:
        index.close()


def found(search: TitleSearch, text: str) -> list[int]:
    is_whole = False
    while not is_whole:  # a search ends after a second, which a busy machine may need for a few titles
        ids, is_whole = asyncio.run(search.search(text, 50))
    return ids


def put(db: sqlite3.Connection, story_id: int, title: str | None, language: Language = HINDI) -> None:
    story = Story(story_id, language, title=title)
    commit(db, Fingerprinted(story, fingerprint_of(next(texts).to_bytes(16)), None))


@settings(deadline=None, max_examples=count_examples(40))
@given(steps)
def test_search_finds_what_a_scan_of_the_titles_finds(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, int, str | None]]
) -> None:
    path, db = tmp_path_factory.mktemp("titles") / "t", ledger_in_memory()
    titles: dict[int, str | None] = {}
    for does, story_id, title in [*steps, ("search", 1, None)]:
        if does == "edit" or (does == "list" and story_id not in titles):
            put(db, story_id, title)
            titles[story_id] = title
        elif does == "list":
            commit(db, Skipped(Story(story_id, HINDI, title=title), Skip.UNCHANGED))
            titles[story_id] = title
        elif does == "remove":
            commit(db, Skipped(Story(story_id, HINDI), Skip.EMPTY))
            titles.pop(story_id, None)
        elif does == "damage" and path.exists():
            path.write_bytes(b"\0" * path.stat().st_size)
        elif does == "restore":
            path.unlink(missing_ok=True)
        with searching(db, path) as search:
            for word in WORDS if does == "search" else ():
                expected = {
                    n
                    for n, known_title in titles.items()
                    if known_title and set(tokenize(word)) <= set(tokenize(known_title))
                }
                assert set(found(search, word)) == expected, f"{word} in {titles}"
    db.close()


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_script_is_found_by_each_of_its_words(tmp_path: Path, language: Language) -> None:
    db, lines = ledger_in_memory(), [line for line in TEXTS[language].splitlines() if line.strip()]
    for n, line in enumerate(lines):
        put(db, n, line, language)
    with searching(db, tmp_path / "t") as search:
        for n, line in enumerate(lines):
            for word in set(line.split()):
                ids = found(search, word)
                assert n in ids or not tokenize(word), f"{word} does not find {line}"
                assert all(set(tokenize(word)) <= set(tokenize(lines[other])) for other in ids)
            assert n in found(search, f"“{line.upper()}” - ")
    db.close()


@pytest.mark.parametrize(
    "text", ["", "-", '"', "NEAR(a b)", "a OR b", "titles:a", "a*", "\x00", "'; DROP TABLE titles"]
)
def test_any_text_is_a_search_for_words(tmp_path: Path, text: str) -> None:
    db = ledger_in_memory()
    put(db, 1, "near a b or titles drop table")
    with searching(db, tmp_path / "t") as search:
        words = tokenize(text)
        assert found(search, text) == ([1] if words else [])
    db.close()


def test_latest_stories_are_found_and_damage_during_a_search_is_repaired(tmp_path: Path) -> None:
    db = ledger_in_memory()
    for n in range(300):
        put(db, n, "एक कहानी")
    path = tmp_path / "t"
    with searching(db, path) as search:
        assert found(search, "कहानी") == list(range(299, 249, -1))
    with closing(sqlite3.connect(path)) as other:
        (root,) = other.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'stories_data'").fetchone()
        (size,) = other.execute("PRAGMA page_size").fetchone()
    with path.open("r+b") as file:
        file.seek((root - 1) * size)
        file.write(b"\xff" * size)
    with searching(db, path) as search:
        assert found(search, "कहानी") == list(range(299, 249, -1))


def test_index_of_another_ledger_is_filled_again(tmp_path: Path) -> None:
    first, second = ledger_in_memory(), ledger_in_memory()
    put(first, 1, "पुरानी")
    put(first, 2, "पुरानी")
    put(second, 1, "नयी")
    with searching(first, tmp_path / "t") as search:
        assert found(search, "पुरानी") == [2, 1]
    with searching(second, tmp_path / "t") as search:  # an older copy of a ledger has its id, and fewer changes
        assert found(search, "नयी") == [1]
    index = WordIndex(tmp_path / "t", "another ledger")
    assert index.read_position() == (0, 0)
    index.close()
