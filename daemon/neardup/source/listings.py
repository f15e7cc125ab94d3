"""The listings of stories: a manifest file, the dead letters of a ledger, and those that a configuration names.

[source] and [reference] each name a manifest or queries of Athena (neardup.source.athena); [source] may be a folder
(neardup.source.folder).
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path

from msgspec.structs import replace

from neardup.config import Config, Content, Reference
from neardup.config import Source as Section
from neardup.core.columns import ListedBlock, StoryColumns
from neardup.core.languages import Languages
from neardup.errors import Misuse, needs_extra
from neardup.records import BadRow, Checkpoint, Story
from neardup.source import Source
from neardup.source.folder import Folder, Known, know_nothing
from neardup.source.parse import DEFAULT_KEY, parse_rows
from neardup.source.rows import (
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
        from neardup.s3.objects import open_range_reader
        from neardup.source.athena import Athena

    opener = partial(open_range_reader, content=content)
    languages, key = config.registry, content.key
    return Athena(section, content.region, languages, opener, checkpoint, key=key, of_reference=of_reference)
