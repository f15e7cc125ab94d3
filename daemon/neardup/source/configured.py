"""The listings that a configuration names: that of [source], and that of [reference]."""

from collections.abc import Awaitable, Callable
from functools import partial

from neardup.config import Config, Content, Reference
from neardup.config import Source as Section
from neardup.errors import Misuse
from neardup.extras import needs
from neardup.records import Checkpoint
from neardup.source import Source
from neardup.source.manifest import Manifest

CheckpointWriter = Callable[[Checkpoint], Awaitable[None]]


def open_source(config: Config, checkpoint: CheckpointWriter) -> Source:
    """The source that [source] configures; a resumable listing calls `checkpoint` with its first checkpoint."""
    refuse_scan(config)
    return _open(config, config.source, config.content, checkpoint)


def refuse_scan(config: Config) -> None:
    """Raise Misuse where the configuration is that of a ledger which a scan kept."""
    if config.source.kind == "scan":
        raise Misuse("the documents of a scan are not listed again: run `neardup scan`")


def open_reference(config: Config) -> Source:
    """The listing of works that [reference] configures.  Raises Misuse if there is none."""
    reference = config.reference
    if reference is None:
        raise Misuse("the configuration has no [reference]: name the list of works to protect there")
    return _open(config, reference, reference.content, _ignore)


def _open(config: Config, section: Section | Reference, content: Content, checkpoint: CheckpointWriter) -> Source:
    of_reference = isinstance(section, Reference)
    if section.kind == "manifest":
        assert section.manifest is not None
        return Manifest(section.manifest, config.registry, content.key, of_reference=of_reference)
    with needs("aws", f'{"reference" if of_reference else "source"}.kind = "athena"'):
        from neardup.s3_objects import open_range_reader  # noqa: PLC0415 - loads aioboto3
        from neardup.source.athena import Athena  # noqa: PLC0415 - loads aioboto3

    opener = partial(open_range_reader, content=content)
    languages, key = config.registry, content.key
    return Athena(section, content.region, languages, opener, checkpoint, key=key, of_reference=of_reference)


async def _ignore(_: Checkpoint) -> None:
    """A sync begins again at the first row: it skips the works that are on record."""
