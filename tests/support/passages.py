"""The passage index of a ledger."""

from neardup.ledger import Ledger
from neardup.pipeline.passage_sync import PassageSync, open_passages


async def passages_of(ledger: Ledger) -> PassageSync:
    """The passage index beside a ledger, in step with it."""
    passages = PassageSync(await open_passages(ledger), ledger)
    await passages.catch_up()
    return passages
