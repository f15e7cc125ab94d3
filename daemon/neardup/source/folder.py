"""The pages of a folder as a listing: each file is a story, named by its path below the folder.

Every run lists the whole folder, because no time of a file says that nothing else has changed: a page may come with an
old date, or take another's name.  The ETag of a file, which `records.make_etag` makes, says whether it must be read.
A page that was renamed is another story, and the old one is gone.  One that vanishes after it was listed is `missing`
in that run, and gone in the next.
"""

import asyncio
import html
import os
import re
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from neardup.core.columns import ListedBlock
from neardup.core.languages import Languages
from neardup.core.text.decoding import NoStoryText, decode
from neardup.core.text.scripts import ENGLISH, SURE, Guess, UnknownScript, guess_language
from neardup.errors import Fatal, Misuse
from neardup.records import BadRow, Checkpoint, Dead, Language, ListedRow, StoredVersion, Story, make_etag
from neardup.source import make_blocks
from neardup.source.documents import PAGE_ENDINGS, list_files_below
from neardup.source.parse import ROW_KEY, check_path, parse_id
from neardup.source.rows import BLOCK_ROWS
from neardup.telemetry.log import log

SAMPLE_BYTES = 256 * 1024  # of a page, by which its language is guessed
UNSEEN = re.compile(r"<!--.*?(?:-->|\Z)|<(script|style|head)\b.*?(?:</\1\s*>|\Z)", re.DOTALL | re.IGNORECASE)
TAG = re.compile(r"<[^<>]*>")
LEAST_WORDS = 8  # in a line of prose; shorter ones are menus and headings, often in another language
Known = Callable[[Sequence[int]], Awaitable[Mapping[int, StoredVersion]]]


class _File(NamedTuple):
    """A page that was found: its path below the folder, and the id of its story."""

    path: str
    id: int


async def know_nothing(_: Sequence[int]) -> Mapping[int, StoredVersion]:
    """No story is on record."""
    return {}


class Folder:
    """The pages in the folder `root` and below, those with PAGE_ENDINGS; hidden files and folders are left out.

    A page's language is `language`; or else that of the first folder of its path, if it is named after one; or else the
    one `known` for the story while its file is unchanged; or else the one that script and words show.  `guessed` counts
    the pages by the language that they show, and `unsure` those of them where that is uncertain.
    """

    def __init__(
        self, root: Path, languages: Languages, language: Language | None = None, known: Known = know_nothing
    ) -> None:
        self._root = root
        self._languages = languages
        self._language = language
        self._known = known
        self._found: list[_File | BadRow] = []
        self.name = f"folder {root}"
        self.size = 0  # files
        self.guessed = Counter[Language]()
        self.unsure = 0

    async def find(self) -> Collection[int]:
        """Find the pages; returns the ids of their stories.

        Raises Fatal if there are none, or if a folder cannot be read, because its pages are not gone for that.
        """
        self._found = await asyncio.to_thread(self._find)
        self.size = len(self._found)
        return {found.id for found in self._found if isinstance(found, _File)}

    async def list_blocks(self, *, since: int | None, resume: Checkpoint | None) -> AsyncIterator[ListedBlock]:
        """All pages, whatever `since` and `resume` are.  Raises as `find`, which it calls unless it was called."""
        if not self._found:
            await self.find()
        self.guessed.clear()
        self.unsure = 0
        async for block in make_blocks(self._list_rows()):
            yield block

    def log_guesses(self) -> None:
        """Log which languages were guessed while the pages were listed, if any was."""
        if self.guessed:
            log.info("the languages of pages were guessed", languages=dict(self.guessed), uncertain=self.unsure)

    def _find(self) -> list[_File | BadRow]:
        left_out = Counter[str]()
        try:
            files = list(list_files_below(self._root, left_out))
        except Misuse as error:
            raise Fatal(str(error)) from error
        if not files:
            seen = f", only {', '.join(left_out)}" if left_out else ""
            raise Fatal(f"{self._root} has no files {', '.join(f'*{ending}' for ending in PAGE_ENDINGS)}{seen}")
        paths = (os.path.relpath(file, self._root) for file in files)
        return [_check_path(path, position) for position, path in enumerate(paths, 1)]

    async def _list_rows(self) -> AsyncIterator[ListedRow]:
        for start in range(0, len(self._found), BLOCK_ROWS):
            block = self._found[start : start + BLOCK_ROWS]
            known = await self._known([found.id for found in block if isinstance(found, _File)])
            for row in await asyncio.to_thread(self._list, block, known, start + 1):
                yield row

    def _list(self, block: Sequence[_File | BadRow], known: Mapping[int, StoredVersion], first: int) -> list[ListedRow]:
        return [
            found if isinstance(found, BadRow) else self._make_story(found, known.get(found.id), position)
            for position, found in enumerate(block, first)
        ]

    def _make_story(self, file: _File, known: StoredVersion | None, position: int) -> ListedRow:
        language = (
            self._language or find_folder_language(file.path, self._languages) or self._find_known_language(file, known)
        )
        if language is None:
            try:
                guess = self._guess(file)
            except UnknownScript as error:
                return BadRow(str(file.id), Dead.BAD_LANGUAGE, f"{file.path}: {error}", position, file.path)
            language = guess.language
            self.guessed[language] += 1
            self.unsure += guess.confidence < SURE
        return Story(file.id, language, file.path, position=position, name=file.path)

    def _find_known_language(self, file: _File, known: StoredVersion | None) -> Language | None:
        """The language on record of a story whose file is unchanged."""
        if known is None or known.path != file.path or known.language not in self._languages:
            return None
        try:
            is_unchanged = make_etag((self._root / file.path).stat()) == known.etag
        except OSError:
            is_unchanged = True  # the reading of it says what is wrong
        return known.language if is_unchanged else None

    def _guess(self, file: _File) -> Guess:
        """What the language of a page seems to be; ENGLISH, uncertain, for one that cannot be read here."""
        try:
            descriptor = os.open(self._root / file.path, os.O_RDONLY | os.O_NONBLOCK)  # a pipe would block
            with os.fdopen(descriptor, "rb") as opened:
                return guess_language(extract_prose(opened.read(SAMPLE_BYTES)), self._languages)
        except (OSError, NoStoryText):
            return Guess(ENGLISH, 0.0)


def _check_path(path: str, position: int) -> _File | BadRow:
    """A file that can be listed, or why it cannot be."""
    try:
        path.encode()
    except UnicodeEncodeError:
        shown = os.fsencode(path).decode("utf-8", "replace")
        return BadRow(f"{ROW_KEY}{shown}", Dead.BAD_PATH, f"{shown}: its name is not UTF-8", position)
    try:
        return _File(check_path(path), parse_id(path))
    except ValueError as error:
        return BadRow(f"{ROW_KEY}{path}", Dead.BAD_PATH, str(error), position)


def find_folder_language(path: str, languages: Languages) -> Language | None:
    """The language that the first folder of a path names."""
    first, slash, _ = path.partition("/")
    try:
        return languages.find(first) if slash else None
    except ValueError:
        return None


def extract_prose(page: bytes) -> str:
    """The lines of prose at the beginning of a page, or all its lines if there is none.  Raises NoStoryText."""
    text = html.unescape(TAG.sub("\n", UNSEEN.sub("\n", decode(page, None))))
    lines = [line.strip() for line in text.splitlines()]
    return "\n".join([line for line in lines if len(line.split()) >= LEAST_WORDS] or lines)
