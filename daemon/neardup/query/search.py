"""Searches the stories of a ledger: for those that hold a sentence, and by the words of their titles.

The passage index nominates the stories that may hold a sentence, and the texts of the stories decide.  The index has a
sample of the word 4-grams of each story, and a sentence is looked up by all of its own.  One of 27 words or more always
meets a sample of a story that holds it; a shorter one may be missed.  So the latest stories are also looked up by the
words of their texts, which the first search for a short sentence begins to read.

An index of words nominates, and the titles in the ledger, or the texts, decide.  There is one for the titles and one
for the latest texts.  A backfill pays nothing for them: each catches up with the ledger in the order of story numbers,
while a search waits, for up to a second, and in the background of the desk.  Until it has caught up, a search says that
stories are pending.
"""

import asyncio
import sqlite3
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

from neardup.core.fingerprint.word_hashes import GRAM, WINDOW, Hashes, hash_grams, hash_words, make_passage_hashes
from neardup.core.sets import find_distinct
from neardup.core.text.normalize import tokenize
from neardup.errors import IndexDamaged
from neardup.index.words import BEGINNING, Position, WordIndex
from neardup.ledger import Do, Ledger, files, read, runs, versions
from neardup.pipeline.passage_sync import PassageSync
from neardup.query.compare import LoadedStory, UnreadableStory, describe_stories

ROWS_AT_ONCE = 5_000
NUMBERS_AT_ONCE = 200
SEARCH_SECONDS = 1.0  # that a search spends on filling an index, and on reading on among stories that changed
ATTEMPTS = 2
SURE_WORDS = GRAM + WINDOW - 1  # of a sentence that always meets a sample
LATEST_STORIES = 50_000  # whose texts are searched for short sentences: 90 MB with 720 distinct words each
TEXTS_AT_ONCE = 8


class PassageSearch:
    """Searches for the stories that hold a sentence; the 4-grams of more than `most_holders` stories do not count."""

    def __init__(self, passages: PassageSync, ledger: Ledger, most_holders: int) -> None:
        self._passages, self._ledger, self._most_holders = passages, ledger, most_holders

    async def find_stories(self, words: Sequence[bytes]) -> list[int]:
        """The ids of the stories, ascending, that may hold a sentence, given as its normalised words.

        Raises PassagesDamaged.
        """
        hashes = find_distinct(make_passage_hashes(hash_grams(hash_words(words).hashes)))
        await self._passages.catch_up()
        index = self._passages.index
        _, numbers, _ = await self._passages.ask(lambda: index.find_postings(hashes, self._most_holders))
        return sorted((await self._ledger.do(versions.read_ids, find_distinct(numbers).tolist())).values())


def measure_share_held(sentence: Sequence[bytes], story: Hashes) -> float:
    """The share, 0 to 1, of the word 4-grams of a sentence, its words, that occur in a story, its word hashes."""
    own, others = hash_grams(hash_words(sentence).hashes), hash_grams(story)
    return float(np.isin(own, others).mean()) if len(own) else 0.0


class TitleSearch:
    """Searches the titles of a ledger; safe for concurrent calls."""

    def __init__(self, index: WordIndex, read: Do) -> None:
        self._index, self._read = index, read

    async def catch_up(self, until: float = float("inf")) -> int:
        """Add the pending titles, until a time of `time.monotonic`; returns how many story numbers still are."""
        while True:
            since, last = await _read_positions(self._index, self._read)
            if since == last or time.monotonic() >= until:
                return last.number - since.number
            await asyncio.to_thread(self._index.add, *await self._read(_read_next_rows, since))

    async def search(self, text: str, limit: int) -> tuple[list[int], bool]:
        """The ids of the latest stories with all words of a text in their titles, and whether all titles were searched.

        Words are compared in normal form; each must be in the title as a whole.
        """
        words = tokenize(text)
        if not words:
            return [], True
        until = time.monotonic() + SEARCH_SECONDS
        for attempt in range(ATTEMPTS):
            try:
                pending = await self.catch_up(until)
                return await self._find_matching(words, limit, until), not pending
            except IndexDamaged:
                if attempt == ATTEMPTS - 1:
                    raise
        raise AssertionError

    async def _find_matching(self, words: list[bytes], limit: int, until: float) -> list[int]:
        found: list[int] = []
        below = 2**63 - 1
        while True:
            numbers = await asyncio.to_thread(self._index.find_numbers, words, below, NUMBERS_AT_ONCE)
            rows = await self._read(versions.read_titles, numbers)
            found += [story_id for _, story_id, title in rows if title and set(words) <= set(tokenize(title))]
            if len(found) >= limit or len(numbers) < NUMBERS_AT_ONCE or time.monotonic() >= until:
                return found[:limit]
            below = numbers[-1]


class TextSearch:
    """Searches the texts of the latest stories of a ledger for sentences; safe for concurrent calls.

    `read_text` returns a story with its text, by its row of `describe_stories`; it raises NeardupError if the store
    does not answer.  `is_wanted` is set where texts are still to be read.
    """

    def __init__(
        self,
        index: WordIndex,
        read: Do,
        read_text: Callable[[Mapping[str, Any]], Awaitable[LoadedStory | UnreadableStory]],
    ) -> None:
        self._index, self._read, self._read_text = index, read, read_text
        self.is_wanted = asyncio.Event()

    async def catch_up(self, until: float = float("inf")) -> int:
        """Add the pending texts, until a time of `time.monotonic`; returns how many story numbers still are."""
        while True:
            since, (last, _) = await _read_positions(self._index, self._read)
            first = max(since.number, last - LATEST_STORIES)
            pending = last - first
            if not pending or time.monotonic() >= until:
                return pending
            rows = await self._read(versions.list_numbers_after, first, TEXTS_AT_ONCE)
            known = await self._read(describe_stories, [row.story_id for row in rows])
            texts = await asyncio.gather(*map(self._read_text, known.values()))
            words = {text.known["id"]: text.text.words for text in texts if isinstance(text, LoadedStory)}
            named = [(row.number, b" ".join(set(words.get(row.story_id, []))).decode()) for row in rows]
            end = rows[-1].number if len(rows) == TEXTS_AT_ONCE else last
            await asyncio.to_thread(self._index.add, named, since, Position(end, 0))

    async def find_stories(self, words: Sequence[bytes]) -> tuple[list[int], int]:
        """The ids of the latest stories that may hold a sentence, its normalised words, and how many are pending.

        Raises NeardupError.
        """
        is_read_already = self.is_wanted.is_set()
        pending = await self.catch_up(0 if is_read_already else time.monotonic() + SEARCH_SECONDS)
        if pending:
            self.is_wanted.set()
        numbers = await asyncio.to_thread(self._index.find_numbers, sorted(set(words)), 2**63 - 1, NUMBERS_AT_ONCE)
        return list((await self._read(versions.read_ids, numbers)).values()), pending


def open_words(ledger: Path, file: Path) -> WordIndex:
    """Open an index of words of a ledger in a file beside it.  Raises NeardupError."""
    with closing(read(ledger)) as db:
        ledger_id = runs.get(db, "ledger_id") or ""
    files.make_file(file)
    return WordIndex(file, ledger_id)


async def _read_positions(index: WordIndex, read: Do) -> tuple[Position, Position]:
    """How far an index has come, and how far its ledger.

    An index that is further is emptied: the ledger is then an older copy of the one that filled it.
    """
    since = await asyncio.to_thread(index.read_position)  # first: others may fill the index meanwhile
    last = Position(*await read(versions.read_title_position))
    if since.number > last.number or since.retitled > last.retitled:
        await asyncio.to_thread(index.clear)
        since = BEGINNING
    return since, last


def _read_next_rows(db: sqlite3.Connection, since: Position) -> tuple[list[tuple[int, str]], Position, Position]:
    rows = versions.list_titles_after(db, since.number, ROWS_AT_ONCE)
    changed = versions.list_titles_changed_after(db, since.retitled, ROWS_AT_ONCE)
    number, retitled = versions.read_title_position(db)
    until = Position(
        rows[-1][0] if len(rows) == ROWS_AT_ONCE else number,
        changed[-1][0] if len(changed) == ROWS_AT_ONCE else retitled,
    )
    named = [(number, title) for number, title in rows if title]
    named += [(number, title) for _, number, title in changed if title and number <= since.number]
    return named, since, until
