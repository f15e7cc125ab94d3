"""The open parts of embedding: ledger, vectors and model."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass

from neardup.config import Config, Meaning
from neardup.errors import Misuse
from neardup.ledger import Ledger, files, read, runs
from neardup.ledger.changes import last_seq
from neardup.meaning import vectors
from neardup.meaning.configured import open_embedder
from neardup.meaning.embedders import Embedder, probe
from neardup.meaning.vectors_file import VectorsFile, claim


@dataclass(frozen=True, slots=True)
class Parts:
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
        recognised_by, ledger_id = await probe(embedder), await ledger.do(runs.get, "ledger_id") or ""
        with closing(VectorsFile(files.vectors_file(config.ledger.path))) as held:
            await held.do(claim, embedder.model, recognised_by, ledger_id, await ledger.do(last_seq))
            yield Parts(config.meaning, ledger, held, embedder)


async def make_codes(parts: Parts, stop: asyncio.Event) -> None:
    """Fit what centres the vectors if the corpus has grown, and make the codes that are missing."""
    await parts.vectors.do(vectors.fit_means)
    await parts.vectors.do(vectors.fit_directions)
    made = 1
    while made and not stop.is_set():
        made = await parts.vectors.do(vectors.make_codes)
