"""The desk names the catalogues of works: its queues are filtered by them, and pages of works open by name and number.

Titles and names of catalogues are hostile to markup.
"""

import sqlite3
from contextlib import closing
from pathlib import Path
from urllib.parse import quote, urlencode

import pytest
from msgspec.structs import replace
from neardup.core.fingerprint.version import version
from neardup.ledger import candidates, connect, runs, verification
from neardup.pipeline.verifier import BEFORE_ALL
from neardup.records import Assessment, Fingerprinted, Signals, Story
from neardup.source.parse import parse_id

from tests.support.builders import commit, fingerprint_of
from tests.support.desk_client import get, named_client
from tests.support.languages import HINDI, SAMPLED

CLASSICS, MARKUP = "Classics & more", "<b>पुनर्मुद्रण</b>"
CATALOGUES = dict(zip(SAMPLED, [CLASSICS, MARKUP] * 5, strict=True))  # a copied work of each language
COPY_OF_NONE = 99
OPEN = "Any catalogue or none"


def name_of(number: int, catalogue: str) -> str:
    return f"reference:{catalogue}/{number}"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Ten works, each copied by one story that is dated before it; and a story that copies another story."""
    with closing(connect(tmp_path / "neardup.db")) as db:
        runs.put(db, "fingerprint_version", version())
        for number, (language, catalogue) in enumerate(CATALOGUES.items()):
            name = name_of(number, catalogue)
            work = Story(parse_id(name), language, f"{number}.html", "poet", f"रचना {number}", 900_000, name=name)
            copy = Story(number, language, f"copy {number}.html", "copier", f"copy {number}", 1)
            flag(db, replace(work, catalogue=catalogue, licence="CC0"), copy)
        flag(db, Story(COPY_OF_NONE - 1, HINDI, title="own 98"), Story(COPY_OF_NONE, HINDI, title="own 99"))
    return tmp_path


def flag(db: sqlite3.Connection, first: Story, second: Story) -> None:
    both = [Fingerprinted(story, fingerprint_of(abs(story.id).to_bytes(16)), None) for story in (first, second)]
    commit(db, *both, pairs={(first.id, second.id)})
    [pair] = candidates.list_pending(db, BEFORE_ALL, 2)
    verification.record(db, [(pair, Assessment("similar", Signals(40, jaccard=0.6)))], "v")


async def test_queues_are_filtered_by_catalogue(folder: Path) -> None:
    async with named_client(folder) as client:
        every = "".join([(await get(client, f"/?page={page_number}"))[1] for page_number in (1, 2)])
        assert OPEN in every and all(f"<bdi>{name}</bdi>" in every for name in (CLASSICS,))
        assert every.count(f'<span class="badge"><bdi>{CLASSICS}') == 5
        assert f"copy {COPY_OF_NONE}" not in every and f"own {COPY_OF_NONE}" in every
        for wanted in (CLASSICS, MARKUP):
            status, page = await get(client, f"/?{urlencode({'catalogue': wanted, 'status': 'every'})}")
            assert status == 200 and f"own {COPY_OF_NONE}" not in page
            for number, catalogue in enumerate(CATALOGUES.values()):
                assert (f">copy {number}<" in page) == (catalogue == wanted), number
            assert urlencode({"catalogue": wanted}) in page, "a filter drops the catalogue from the address"
        _, nothing = await get(client, "/?catalogue=none")
        assert "No cases here." in nothing


async def test_markup_in_the_name_of_a_catalogue_stays_text(folder: Path) -> None:
    async with named_client(folder) as client:
        for path in ("/", "/story/1", "/case/1", f"/pair/{parse_id(name_of(1, MARKUP))}/1"):
            async with client.get(path) as answer:
                assert answer.status == 200 and "<b>पुन" not in await answer.text(), path


async def test_pages_of_copies_and_works_name_the_catalogue(folder: Path) -> None:
    name = name_of(0, CLASSICS)
    paths = ["/story/0", "/case/0", f"/pair/{parse_id(name)}/0", f"/pair/0/{quote(name, safe='')}"]
    async with named_client(folder) as client:
        for path in paths:
            status, page = await get(client, path)
            assert status == 200 and CLASSICS in page, path
        for path in (f"/story/{parse_id(name)}", f"/story/{quote(name, safe='')}"):
            status, page = await get(client, path)
            assert status == 200 and "रचना 0" in page, path
