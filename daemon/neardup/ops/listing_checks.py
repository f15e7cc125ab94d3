"""The checks of `neardup doctor` of the listings of stories and of works, and of the pages that they name."""

from contextlib import aclosing, closing
from typing import TYPE_CHECKING, cast

from neardup.app import open_readers
from neardup.config import Config
from neardup.core.page import PageFingerprinted, Unreadable
from neardup.errors import Fatal, Gone
from neardup.languages import LANGUAGES
from neardup.ledger import connect, stories, works
from neardup.ops import reference_contents
from neardup.ops.check_result import NeedsRepair
from neardup.pages.results import NotModified, ReadFailed
from neardup.records import Checkpoint, Language, Skip, Story, is_work
from neardup.source import Source, rows_of
from neardup.source.listings import open_reference, open_source
from neardup.source.rows import OF_STORIES, OF_WORKS

if TYPE_CHECKING:
    from neardup.source.athena import Athena  # its libraries are optional


async def check_source(config: Config) -> str:
    """Read the first row of [source], or the columns of its query; what they are."""
    source = open_source(config, _ignore_checkpoint)
    if config.source.kind == "athena":
        return await _columns(source, OF_STORIES.required, "backfill_sql")
    story = await _first_listed(source)
    return f"{config.source.manifest}, with stories such as {story.name or story.id}" if story else "lists no story"


async def check_store(config: Config) -> str:
    """Read the page of one story; what it is."""
    of_manifest = config.source.kind == "manifest"
    known = await _first_listed(open_source(config, _ignore_checkpoint)) if of_manifest else _on_record(config)
    try:
        return await _read_page(config, known or Story(0, LANGUAGES[0]))
    except Gone:
        if known is not None:
            raise
        return "the store answers; no story is known yet, so no page was read"


async def check_reference(config: Config) -> str:
    """Read the first row of [reference] and the page of one work, and compare the works on record with the last sync.

    Raises NeedsRepair if works are on record that are not as the listing says, or that no [reference] lists.
    """
    reference, found, known = config.reference, "no [reference]", None
    if reference is not None:
        listing = open_reference(config)
        if reference.kind == "athena":
            found, known = (
                await _columns(listing, OF_WORKS.required, "reference.sql"),
                _on_record(config, of_reference=True),
            )
        else:
            found, known = str(reference.manifest), await _first_listed(listing)
    if known is not None:
        found += f", {await _read_page(config, known)}"
    with closing(connect(config.ledger.path)) as db:
        if (difference := reference_contents.difference(db, reference)) is not None:
            raise NeedsRepair(difference)
        return f"{found}, {works.count(db):,} works on record"


async def _columns(source: Source, required: tuple[str, ...], query: str) -> str:
    columns = await cast("Athena", source).columns()
    missing = [column for column in required if column not in columns]
    if missing:
        raise Fatal(f"{query} lists no column {' and no column '.join(missing)}")
    return f"Athena lists the columns {', '.join(columns)}"


async def _read_page(config: Config, story: Story) -> str:
    """What the page of a story is.  Raises Gone if the store has none, Fatal."""
    async with aclosing(open_readers(config)) as pool:
        path, result = pool.location_of(story), await pool.read(story, None)
    match result:
        case PageFingerprinted(fingerprint, _, size):
            return f"{path}, {size} bytes, a {'work' if is_work(story.id) else 'story'} of {fingerprint.words} words"
        case Unreadable(Skip.MISSING):
            raise Gone(f"the store answers, but has no object {path}")
        case Unreadable(reason):
            raise Fatal(f"{path}: {reason}; is {'reference.' if is_work(story.id) else ''}extract.body right?")
        case ReadFailed(error=error):
            raise Fatal(error)
        case NotModified():
            raise AssertionError("without an ETag a page is always read")


async def _first_listed(source: Source) -> Story | None:
    async with aclosing(rows_of(source)) as listing:  # type: ignore[type-var]
        async for story in listing:
            if isinstance(story, Story):
                return story
    return None


def _on_record(config: Config, *, of_reference: bool = False) -> Story | None:
    """A story of the platform that is on record, or a work."""
    with closing(connect(config.ledger.path)) as db:
        for row in stories.describe(db, stories.first(db, of_reference=of_reference)).values():
            return Story(row["id"], Language(row["language"]), row["path"], name=row["name"])
    return None


async def _ignore_checkpoint(_: Checkpoint) -> None:
    """Ignore the checkpoint: the doctor never resumes a listing."""
