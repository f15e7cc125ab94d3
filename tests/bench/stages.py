"""What one story costs in each pure stage, and in its read, in neardup and in the reference.

`python -m tests.bench.stages CONFIG ENDPOINT COUNT` prints CPU microseconds a story, as JSON; the
reference is given the first COUNT pages only.  Nothing else runs in the process meanwhile.
"""

import asyncio
import json
import sys
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import click
import uvloop

from daemon.app import extraction, open_fetcher
from daemon.config import Config, load
from daemon.core import golden
from daemon.core.fingerprint import fingerprint
from daemon.core.html import decode, visible_text
from daemon.core.text import tokens
from daemon.records import Language, Story
from tests.bench import reference
from tests.bench.pages import LANGUAGE, read_ids

Stage = Callable[[Any], Any]
Costs = dict[str, float]


def chain_costs(pages: Sequence[bytes], stages: Mapping[str, Stage]) -> Costs:
    """Each page through all the stages, one after the other; microseconds a page."""
    spent = dict.fromkeys(stages, 0.0)
    for page in pages:
        value: Any = page
        for name, stage in stages.items():
            began = time.process_time()
            value = stage(value)
            spent[name] += time.process_time() - began
    return {name: seconds * 1e6 / len(pages) for name, seconds in spent.items()}


async def fetch_cost(fetch: Callable[[int], Awaitable[bytes]], ids: Sequence[int]) -> tuple[float, list[bytes]]:
    """All the pages, so many at a time as the reference reads; microseconds a page, and the pages."""
    gate = asyncio.Semaphore(reference.CONCURRENCY)

    async def one(story_id: int) -> bytes:
        async with gate:
            return await fetch(story_id)

    began = time.process_time()
    pages = await asyncio.gather(*map(one, ids))
    return (time.process_time() - began) * 1e6 / len(ids), pages


async def subject_costs(config: Config, ids: Sequence[int]) -> Costs:
    fetcher = open_fetcher(config)

    async def fetch(story_id: int) -> bytes:
        document = await fetcher.get(Story(story_id, Language(LANGUAGE)))
        assert document is not None
        return document.body

    cost, pages = await fetch_cost(fetch, ids)
    golden.version()  # builds the tables, which are built once
    stages: dict[str, Stage] = {
        "decode": partial(decode, content_type="text/html"),
        "visible_text": partial(visible_text, extraction=extraction(config)),
        "tokens": tokens,
        "fingerprint": fingerprint,
    }
    return {"fetch": cost, **chain_costs(pages, stages)}


async def reference_costs(endpoint: str, ids: Sequence[int]) -> Costs:
    async with reference.s3_client(endpoint) as s3:
        cost, pages = await fetch_cost(partial(reference.fetch, s3), ids)
    stages: dict[str, Stage] = {
        "decode": bytes.decode,
        "visible_text": reference.text_of,
        "tokens": reference.words_of,
        "fingerprint": reference.simhash,
    }
    return {"fetch": cost, **chain_costs(pages, stages)}


def main(config: Config, endpoint: str, count: int) -> dict[str, Costs]:
    """Each on the event loop that it runs on in its flow."""
    assert config.source.manifest is not None
    ids = read_ids(config.source.manifest)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        made = runner.run(subject_costs(config, ids))
    return {"neardup": made, "reference": asyncio.run(reference_costs(endpoint, ids[:count]))}


if __name__ == "__main__":
    click.echo(json.dumps(main(load(Path(sys.argv[1])), sys.argv[2], int(sys.argv[3]))))
