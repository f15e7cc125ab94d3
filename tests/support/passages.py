"""The passage index of a ledger, and a writer that keeps it in step."""

from collections.abc import Callable

from neardup.config import Detection
from neardup.index.protocol import Index
from neardup.ledger import Ledger
from neardup.pipeline.index_sync import IndexWait
from neardup.pipeline.passage_sync import PassageSync, open_passages
from neardup.pipeline.summary import Counts
from neardup.pipeline.writer import Writer


async def passages_of(ledger: Ledger) -> PassageSync:
    """The passage index beside a ledger, in step with it."""
    passages = PassageSync(await open_passages(ledger), ledger)
    await passages.catch_up()
    return passages


async def writer_of(
    ledger: Ledger,
    index: Index,
    detection: Detection | None = None,
    version: str = "v",
    *,
    run_id: int = 1,
    committed: Callable[[], None] = lambda: None,
) -> Writer:
    return Writer(
        ledger,
        index,
        detection or Detection(),
        version,
        passages=await passages_of(ledger),
        index_wait=IndexWait(ledger),
        run_id=run_id,
        counts=Counts(),
        live_facts=dict,
        checkpoint=lambda _: None,
        committed=committed,
    )
