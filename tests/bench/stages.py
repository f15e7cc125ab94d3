"""Measures the CPU time of each stage of reading a page, in neardup and in the reference.

`python -m tests.bench.stages CONFIG ENDPOINT COUNT` prints CPU microseconds per story, as JSON; the reference processes
the first COUNT pages only.  Nothing else runs in the process, and the tables are loaded before the clock starts.
"""

import asyncio
import json
import socket
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import click
from neardup.app import make_extraction
from neardup.config import Config, load
from neardup.core.fingerprint import version as fingerprint_version
from neardup.core.fingerprint.compute import fingerprint_text
from neardup.core.page import Page
from neardup.core.text.html import extract_page_text
from neardup.pages.s3 import Transfers
from neardup.pages.store import Pages, make_path
from neardup.records import Language, Story

from tests.bench import reference
from tests.bench.pages import LANGUAGE, read_ids

Stage = Callable[[Any], Any]
Costs = dict[str, float]


def chain_costs(pages: Sequence[Any], stages: Mapping[str, Stage]) -> Costs:
    """Pass each page through all stages in turn; returns the CPU microseconds per page of each stage."""
    cpu = dict.fromkeys(stages, 0.0)
    for page in pages:
        value: Any = page
        for name, stage in stages.items():
            start = time.process_time()
            value = stage(value)
            cpu[name] += time.process_time() - start
    return {name: seconds * 1e6 / len(pages) for name, seconds in cpu.items()}


def subject_costs(config: Config, ids: Sequence[int]) -> Costs:
    """The costs in a reader process, with as many concurrent requests as the reference makes."""
    fingerprint_version.version()  # loads the tables, as a reader process does at its start
    store, settings = Pages(config.content), make_extraction(config)
    paths = [make_path(config.content, Story(story_id, Language(LANGUAGE))) for story_id in ids]
    start = time.process_time()
    pages = list(_fetched(store, iter(paths)))
    fetch = (time.process_time() - start) * 1e6 / len(ids)
    stages: dict[str, Stage] = {
        "extract": lambda page: extract_page_text(page.body, page.content_type, settings),
        "fingerprint": fingerprint_text,
    }
    return {"fetch": fetch, **chain_costs(pages, stages)}


def _fetched(store: Pages, paths: Iterator[str]) -> Iterator[Page]:
    idle, other = socket.socketpair()
    with idle, other:
        transfers = Transfers(idle.fileno())
        for path in islice(paths, reference.CONCURRENCY):
            transfers.begin(store.begin(path))
        while transfers.under_way:
            transfers.advance(wait=True)
            while get := transfers.pop_finished():
                page = store.read_page(get)
                for path in islice(paths, 1):
                    transfers.begin(store.begin(path))
                assert page is not None
                yield page


async def reference_costs(endpoint: str, ids: Sequence[int]) -> Costs:
    slots = asyncio.Semaphore(reference.CONCURRENCY)
    async with reference.s3_client(endpoint) as s3:

        async def fetch(story_id: int) -> bytes:
            async with slots:
                return await reference.fetch(s3, story_id)

        start = time.process_time()
        pages = await asyncio.gather(*map(fetch, ids))
        fetch_cost = (time.process_time() - start) * 1e6 / len(ids)
    stages: dict[str, Stage] = {
        "extract": lambda page: reference.text_of(page.decode()),
        "fingerprint": lambda text: reference.simhash(reference.words_of(text)),
    }
    return {"fetch": fetch_cost, **chain_costs(pages, stages)}


def main(config: Config, endpoint: str, count: int) -> dict[str, Costs]:
    """The costs of neardup on all pages of the manifest, and of the reference on the first `count`."""
    assert config.source.manifest is not None
    ids = read_ids(config.source.manifest)
    return {"neardup": subject_costs(config, ids), "reference": asyncio.run(reference_costs(endpoint, ids[:count]))}


if __name__ == "__main__":
    click.echo(json.dumps(main(load(Path(sys.argv[1])), sys.argv[2], int(sys.argv[3]))))
