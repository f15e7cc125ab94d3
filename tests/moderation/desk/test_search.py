"""Laws of the search: a story is found by its id, its name, words of its title, and any long sentence that it holds, in
every language, flagged or not; what is found is shown as text, and leads to the story.
"""

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

import pytest
from neardup.core.languages import LANGUAGES
from neardup.ledger import connect
from neardup.records import Verdict

from tests.support.copying_story import CopiedFrom, write_copying_story
from tests.support.desk_client import Client, get, named_client
from tests.support.languages import HINDI, TEXTS
from tests.support.verdicts import give_verdict

SENTENCE = 27  # words; a passage of as many always meets the index
HOSTILE = "<script>alert(1)</script> कहानी"


def text_of(n: int) -> list[str]:
    """A text in the nth language: its words, shuffled alike for every caller."""
    words = TEXTS[LANGUAGES[n]].split()
    return [words[(k * 7 + k * k // 3) % len(words)] + str(k % 13) for k in range(150)]


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    """A ledger with a story in each language that has no flag, and one in Hindi that copies from another."""
    with closing(connect(tmp_path / "neardup.db")) as db:
        for n, language in enumerate(LANGUAGES):
            title = " ".join(TEXTS[language].split()[:3])
            write_copying_story(tmp_path, db, 100 + n, language, text_of(n), [], author=f"a{n}", title=title)
        source = CopiedFrom([*"एक दो"], [(0, 0, 2)], author="7020", title=HOSTILE)
        write_copying_story(tmp_path, db, 7020, HINDI, [*"एक दो"], [source], title="1984")
        give_verdict(db, [(7019, 7020)], Verdict.PLAGIARISM)
        yield db


def results(page: str) -> list[int]:
    return [int(found) for found in re.findall(r'class="row" href="/story/(\d+)"', page)]


async def whole_results(client: Client, text: str) -> str:
    """The results of a search once the desk has read all texts, for which a search has a second."""
    page = (await get(client, address(text)))[1]
    return await whole_results(client, text) if "still reading texts" in page else page


def address(text: str) -> str:
    return f"/search?q={quote(text)}"


@pytest.mark.usefixtures("ledger")
async def test_every_language_is_found_by_title_and_by_sentence(tmp_path: Path) -> None:
    async with named_client(tmp_path) as client:
        for n, language in enumerate(LANGUAGES):
            first = TEXTS[language].split()[:3]
            status, page = await get(client, address(" ".join(reversed(first))))
            assert (status, 100 + n in results(page)) == (200, True), f"{language}: no story by its title"
            assert "not flagged" in page
            sentence = text_of(n)[40 + n : 40 + n + SENTENCE]
            status, page = await get(client, address("«" + ", ".join(sentence) + "!»"))
            assert (status, results(page)) == (200, [100 + n]), f"{language}: no story by its sentence"
            assert "100\xa0% of the sentence" in page
            for length in (4, 9, 15):
                start = 20 + 7 * n % 100
                page = await whole_results(client, " ".join(text_of(n)[start : start + length]))
                assert results(page) == [100 + n], f"{language}: no story by {length} words"
            edited = [*sentence[:14], "उलटा", *sentence[14:]]
            assert results((await get(client, address(" ".join(edited))))[1]) in ([100 + n], []), "another story"


@pytest.mark.usefixtures("ledger")
async def test_ids_lead_to_stories_and_authors(tmp_path: Path) -> None:
    async with named_client(tmp_path) as client:

        async def target(text: str) -> str | None:
            async with client.get(address(text), allow_redirects=False) as answer:
                return answer.headers.get("Location")

        assert await target("103") == "/story/103"
        assert await target(" copier ") == "/author/copier"
        status, page = await get(client, address("7020"))
        assert status == 200, "the id of a story and of an author"
        assert 'href="/story/7020"' in page and 'href="/author/7020"' in page
        status, page = await get(client, address("1984"))
        assert (status, results(page)) == (200, [7020]), "digits may be a title"
        assert "1 pair, 1 plagiarism" in page
        async with client.get(address("कहानी script")) as answer:
            markup = await answer.text()
        assert results(markup) == [7019] and "<script>alert" not in markup and "author/7020" in markup


@pytest.mark.usefixtures("ledger")
async def test_nothing_is_found(tmp_path: Path) -> None:
    async with named_client(tmp_path) as client:
        for text in ("", "  ", "-", "<b>none</b>", '" OR *', "कुछ " * 40, "x" * 5_000):
            status, page = await get(client, address(text))
            assert status == 404 and "Nothing is found" in page, text[:20]
        assert "27 words are always found" in (await get(client, address("कुछ नया " * 9)))[1]


async def test_story_without_its_page_may_hold_a_sentence(tmp_path: Path, ledger: sqlite3.Connection) -> None:
    sentence = " ".join(text_of(3)[10 : 10 + SENTENCE])
    (tmp_path / "103.html").unlink()
    async with named_client(tmp_path) as client:
        status, page = await get(client, address(sentence))
        assert (status, results(page)) == (200, [103])
        assert "texts cannot be read now" in page
        ledger.execute("DELETE FROM stories WHERE id = 103")
        assert (await get(client, address(sentence)))[0] == 404, "a story that is gone is not listed"
