"""What one story costs in each stage of its reading, in neardup and in the reference.

`python -m tests.bench.stages CONFIG ENDPOINT COUNT` prints CPU microseconds a story, as JSON; the
reference is given the first COUNT pages only.  Nothing else runs in the process meanwhile, and what
is compiled is loaded before the clock starts.
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
from neardup.app import extraction
from neardup.config import Config, load
from neardup.core.fingerprint import version as fingerprint_version
from neardup.core.fingerprint.compute import fingerprint_text
from neardup.core.page import Page
from neardup.core.text.html import page_text
from neardup.pages.curl_multi import Transfers
from neardup.pages.store import Pages, path_of
from neardup.records import Language, Story

from tests.bench import reference
from tests.bench.pages import LANGUAGE, read_ids

Stage = Callable[[Any], Any]
Costs = dict[str, float]


def chain_costs(pages: Sequence[Any], stages: Mapping[str, Stage]) -> Costs:
    """Each page through all the stages, one after the other; microseconds a page."""
    spent = dict.fromkeys(stages, 0.0)
    for page in pages:
        value: Any = page
        for name, stage in stages.items():
            began = time.process_time()
            value = stage(value)
            spent[name] += time.process_time() - began
    return {name: seconds * 1e6 / len(pages) for name, seconds in spent.items()}


def subject_costs(config: Config, ids: Sequence[int]) -> Costs:
    """As a reader process has them: with as many requests under way as the reference has."""
    fingerprint_version.warm_up()
    pages, extracting = Pages(config.content), extraction(config)
    paths = [path_of(config.content, Story(story_id, Language(LANGUAGE))) for story_id in ids]
    began = time.process_time()
    documents = list(_fetched(pages, iter(paths)))
    fetching = (time.process_time() - began) * 1e6 / len(ids)
    stages: dict[str, Stage] = {
        "extract": lambda document: page_text(document.body, document.content_type, extracting),
        "fingerprint": fingerprint_text,
    }
    return {"fetch": fetching, **chain_costs(documents, stages)}


def _fetched(pages: Pages, paths: Iterator[str]) -> Iterator[Page]:
    idle, other = socket.socketpair()
    with idle, other:
        transfers = Transfers(idle.fileno())
        for path in islice(paths, reference.CONCURRENCY):
            transfers.begin(pages.begin(path))
        while transfers.under_way:
            transfers.advance(wait=True)
            while get := transfers.pop_finished():
                document = pages.page_of(get)
                for path in islice(paths, 1):
                    transfers.begin(pages.begin(path))
                assert document is not None
                yield document


async def reference_costs(endpoint: str, ids: Sequence[int]) -> Costs:
    gate = asyncio.Semaphore(reference.CONCURRENCY)
    async with reference.s3_client(endpoint) as s3:

        async def fetch(story_id: int) -> bytes:
            async with gate:
                return await reference.fetch(s3, story_id)

        began = time.process_time()
        pages = await asyncio.gather(*map(fetch, ids))
        fetching = (time.process_time() - began) * 1e6 / len(ids)
    stages: dict[str, Stage] = {
        "extract": lambda page: reference.text_of(page.decode()),
        "fingerprint": lambda text: reference.simhash(reference.words_of(text)),
    }
    return {"fetch": fetching, **chain_costs(pages, stages)}


def main(config: Config, endpoint: str, count: int) -> dict[str, Costs]:
    """All pages of the configured manifest, and the reference's part of them."""
    assert config.source.manifest is not None
    ids = read_ids(config.source.manifest)
    return {
        "neardup": subject_costs(config, ids),
        "reference": asyncio.run(reference_costs(endpoint, ids[:count])),
    }


if __name__ == "__main__":
    click.echo(json.dumps(main(load(Path(sys.argv[1])), sys.argv[2], int(sys.argv[3]))))
