"""The listings of stories: a manifest file, the pages of a folder, the dead letters of a ledger; what names them.

[source] and [reference] each name a manifest or queries of Athena (neardup.source.athena); [source] may be a folder.

Each file of a folder is a story, named by its path below the folder.  Every run lists the whole folder, because no time
of a file says that nothing else has changed: a page may come with an old date, or take another's name.  The ETag of a
file, which `records.make_etag` makes, says whether it must be read.  A page that was renamed is another story, and the
old one is gone.  One that vanishes after it was listed is `missing` in that run, and gone in the next.
"""

import asyncio
import html
import os
import re
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace

from neardup.config import Config, Content, Reference
from neardup.config import Source as Section
from neardup.core.columns import ListedBlock, StoryColumns
from neardup.core.languages import Languages
from neardup.core.text.decoding import NoStoryText, decode
from neardup.core.text.scripts import ENGLISH, SURE, Guess, UnknownScript, guess_language
from neardup.errors import Fatal, Misuse, needs_extra
from neardup.records import BadRow, Checkpoint, Dead, Language, ListedRow, StoredVersion, Story, make_etag
from neardup.source import Source, make_blocks
from neardup.source.documents import PAGE_ENDINGS, list_files_below
from neardup.source.parse import DEFAULT_KEY, ROW_KEY, check_path, parse_id, parse_rows
from neardup.source.rows import (
    BLOCK_ROWS,
    JSON,
    JSONL,
    OF_STORIES,
    OF_WORKS,
    PARQUET,
    FileReader,
    PlainRows,
    Row,
    detect_kind,
    open_parquet,
    read_csv_blocks,
    read_json,
    read_jsonl,
    read_parquet,
)
from neardup.telemetry.log import log

SAMPLE_BYTES = 256 * 1024  # of a page, by which its language is guessed
UNSEEN = re.compile(r"<!--.*?(?:-->|\Z)|<(script|style|head)\b.*?(?:</\1\s*>|\Z)", re.DOTALL | re.IGNORECASE)
TAG = re.compile(r"<[^<>]*>")
LEAST_WORDS = 8  # in a line of prose; shorter ones are menus and headings, often in another language
Known = Callable[[Sequence[int]], Awaitable[Mapping[int, StoredVersion]]]
CheckpointWriter = Callable[[Checkpoint], Awaitable[None]]


class Manifest:
    """The stories of the file at `path`, of the kind that `rows.detect_kind` finds.

    `key` is content.key, by which the page of a story is found whose row has a name and no path.  The stories are works
    if the manifest is `of_reference`.
    """

    def __init__(self, path: Path, languages: Languages, key: str = DEFAULT_KEY, *, of_reference: bool = False) -> None:
        self._path = path
        self._languages = languages
        self._key = key
        self._of_reference = of_reference
        called = f"the {'list of works' if of_reference else 'manifest'} {path}"
        self._read = FileReader(path, called)
        self._kind = detect_kind(self._read.head(), path.suffix.lower())
        self._parquet = open_parquet(path, called) if self._kind == PARQUET else None
        self.size = self._parquet.metadata.num_rows if self._parquet else 0 if self._kind == JSON else self._read.size
        self.name = self._read.name

    async def list_blocks(self, *, since: int | None, resume: Checkpoint | None) -> AsyncIterator[ListedBlock]:
        """The stories updated at or after `since`, and those without an update time.

        Continues from `resume` if that is a checkpoint of this file, unchanged.  Raises Misuse for a header that lacks
        a required column, Fatal if the file changes meanwhile.
        """
        start = resume.position if resume and resume.listing == self.name else 0
        columns = OF_WORKS if self._of_reference else OF_STORIES
        rows: AsyncIterator[Row | PlainRows]
        if self._parquet is not None:
            rows = read_parquet(self._parquet, self._path.name, start, columns)
        elif self._kind == JSON:
            rows = read_json(self._read, start)
        elif self._kind in JSONL:
            rows = read_jsonl(self._read, start)
        else:
            rows = read_csv_blocks(self._read, self._path.name, start, columns)
        async for block in parse_rows(rows, self._languages, self._key, of_reference=self._of_reference):
            yield block if since is None or isinstance(block, BadRow) else _select_updated(block, since)


def _select_updated(stories: StoryColumns, since: int) -> StoryColumns:
    """The stories updated at or after a time, and those without an update time."""
    return stories.take([n for n, at in enumerate(stories.updated_at) if at is None or at >= since])


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


class DeadLetters:
    """The stories that `page(key)` returns with their keys, a page of those behind this key at a time.

    The last page is empty.  `size` is the number of stories, and a story's position counts them from 1.
    """

    def __init__(self, page: Callable[[str], Awaitable[Sequence[tuple[str, Story]]]], size: int) -> None:
        self._page = page
        self.name = "dead letters"
        self.size = size

    async def list_blocks(self, *, since: int | None, resume: Checkpoint | None) -> AsyncIterator[ListedBlock]:
        """All of them; `since` and `resume` are ignored."""
        after, position = "", 0
        while page := await self._page(after):
            yield StoryColumns.of(replace(story, position=n) for n, (_, story) in enumerate(page, position + 1))
            after, position = page[-1][0], position + len(page)


async def ignore_checkpoint(_: Checkpoint) -> None:
    """For a listing that is never resumed, as that of works or a Spark job, which begins again at the first row."""


def open_source(
    config: Config, checkpoint: CheckpointWriter = ignore_checkpoint, known: Known = know_nothing
) -> Source:
    """The source that [source] configures; a resumable listing calls `checkpoint` with its first checkpoint.

    `known` are the stories on record.
    """
    refuse_scan(config)
    if config.source.kind == "folder":
        return open_folder(config, known)
    return _open_listing(config, config.source, config.content, checkpoint)


def open_folder(config: Config, known: Known = know_nothing) -> Folder:
    """The folder that content.url names.  Raises Misuse for another URL, and for an unknown source.language."""
    scheme, _, path = config.content.url.partition(":")
    if scheme != "file":
        raise Misuse('source.kind = "folder" lists the pages of a folder: give content.url = "file:PATH"')
    try:
        language = config.registry.find(config.source.language) if config.source.language else None
    except ValueError as error:
        raise Misuse(f"source.language: {error}") from None
    return Folder(Path(path), config.registry, language, known)


def refuse_scan(config: Config) -> None:
    """Raise Misuse where the configuration is that of a ledger which a scan kept."""
    if config.source.kind == "scan":
        raise Misuse("the documents of a scan are not listed again: run `neardup scan`")


def open_reference(config: Config) -> Source:
    """The listing of works that [reference] configures.  Raises Misuse if there is none."""
    reference = config.reference
    if reference is None:
        raise Misuse("the configuration has no [reference]: name the list of works to protect there")
    return _open_listing(config, reference, reference.content, ignore_checkpoint)


def _open_listing(
    config: Config, section: Section | Reference, content: Content, checkpoint: CheckpointWriter
) -> Source:
    of_reference = isinstance(section, Reference)
    if section.kind == "manifest":
        assert section.manifest is not None
        return Manifest(section.manifest, config.registry, content.key, of_reference=of_reference)
    with needs_extra("aws", f'{"reference" if of_reference else "source"}.kind = "athena"'):
        from neardup.source.athena import Athena

    return Athena(section, content, config.registry, checkpoint)
