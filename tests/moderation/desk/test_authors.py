"""Laws of the pages of authors: every id of an author leads to the author's page, whatever it contains; what the page
counts, its links list; no author is called a copier where the order of publication is not known.
"""

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from html import unescape
from pathlib import Path
from urllib.parse import unquote

import pytest
from neardup.ledger import connect
from neardup.moderation.desk.moderators import Moderator, Right, add_moderator
from neardup.records import Verdict
from neardup.source.parse import quote_id

from tests.support.copying_story import CopiedFrom, write_copying_story
from tests.support.desk_client import desk, get, hidden_fields, named_client, prose, send, sign_in
from tests.support.languages import HINDI, TAMIL
from tests.support.verdicts import give_verdict

COPIER, HOSTILE, INDIC = "copier/one", '"><script>alert(1)</script>?&#%2F', "लेखक ஆசிரியர்"
HARD_IDS = ".", "..", "../a", "%2e%2e", "?a=1#b", "کہانی کار", "a\n/b", "क" * 1_000, "\U0010fffd" * 1_000
NOTE = "बार-बार <b>"
TEXTS = [prose(n, 200).split() for n in range(4)]
PAGES = "/", "/story/1003", "/story/2001", "/pair/1000/1003", "/case/1000", "/authors"


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    """A ledger in which COPIER copies from three others in story 1003, one of them not known, and from one in 2001."""
    with closing(connect(tmp_path / "neardup.db")) as db:
        story = [*TEXTS[0][:60], *TEXTS[1][:50], *TEXTS[2][:40]]
        sources = [
            CopiedFrom(TEXTS[0], [(0, 0, 60)], author=HOSTILE),
            CopiedFrom(TEXTS[1], [(60, 0, 50)], author=INDIC),
            CopiedFrom(TEXTS[2], [(110, 0, 40)], author=None),
        ]
        write_copying_story(tmp_path, db, 1003, HINDI, story, sources, author=COPIER)
        again = [CopiedFrom(TEXTS[3], [(0, 0, 200)], author=INDIC)]
        write_copying_story(tmp_path, db, 2001, HINDI, TEXTS[3], again, author=COPIER)
        give_verdict(db, [(1000, 1003)], Verdict.PLAGIARISM)
        yield db


def links(page: str) -> dict[str, str]:
    """The addresses of the pages of authors that a page links to, by the author's id."""
    return {
        unquote(href.removeprefix("/author/")).strip(): href for href in re.findall(r'href="(/author/[^"?#]*)', page)
    }


@pytest.mark.usefixtures("ledger")
async def test_every_id_of_an_author_leads_to_the_authors_page(tmp_path: Path) -> None:
    async with named_client(tmp_path) as client:
        found: dict[str, str] = {}
        for path in PAGES:
            async with client.get(path) as answer:
                text = await answer.text()
            assert answer.status == 200 and "<script>alert" not in text, path
            found |= links(text)
        assert found.keys() == {COPIER, HOSTILE, INDIC}
        for author, href in found.items():
            async with client.get(href) as answer:
                text = await answer.text()
            assert answer.status == 200, f"{author} has no page at {href}"
            assert f"<h1>Author <bdi>{author}</bdi></h1>" in unescape(text) and "<script>alert" not in text
        assert (await get(client, "/author/none"))[0] == 404


async def test_an_author_with_any_id_is_reached_hidden_and_shown_again(tmp_path: Path) -> None:
    moderators = tmp_path / "moderators.toml"
    secret = add_moderator(moderators, Moderator("Asha"))
    with closing(connect(tmp_path / "neardup.db")) as db:
        for n, author in enumerate(HARD_IDS):
            source = [CopiedFrom(TEXTS[0], [(0, 0, 200)], author=f"source {n}")]
            write_copying_story(tmp_path, db, 1001 + 10 * n, HINDI, TEXTS[0], source, author=author)
    async with desk(tmp_path, moderators=moderators) as client:
        await sign_in(client, secret)
        for n, author in enumerate(HARD_IDS):
            address = links((await get(client, f"/story/{1001 + 10 * n}"))[1])[author]
            status, page = await get(client, address)
            assert (status, f"<h1>Author <bdi>{author}</bdi></h1>" in page) == (200, True), f"no page of {author!r}"
            status, target, _ = await send(client, f"{address}/hide", hidden_fields(page) | {"note": ""})
            assert (status, (await get(client, target))[0]) == (303, 200), f"{author!r} is not hidden"
            headers = {"Authorization": f"Bearer {secret}"}
            async with client.get("/api/hidden", headers=headers) as answer:
                assert [hidden["author_id"] for hidden in (await answer.json())["authors"]] == [author]
            async with client.post(f"/api/authors/{quote_id(author)}/show", json={}, headers=headers) as answer:
                assert (answer.status, await answer.json()) == (200, {"authors": []}), author


@pytest.mark.usefixtures("ledger")
async def test_page_of_an_author_counts_what_its_links_list(tmp_path: Path) -> None:
    async with named_client(tmp_path) as client:
        status, page = await get(client, "/author/copier%2Fone")
        assert status == 200
        assert "1 story with the verdict plagiarism, 2 open" in page, "story 1003 has a verdict and open pairs"
        assert "4 pairs with stories by others: 3 open, 1 plagiarism" in page
        rows = re.findall(r'<a href="(/author/\S+\?with=[^"]*)#stories">(\d+)</a></td>(.*?)</tr>', page)
        assert [(n, re.findall(r"<td class=\"n\"[^>]*>(\d*)</td>", rest)) for _, n, rest in rows] == [
            ("2", ["2", "", "", ""]),
            ("1", ["1", "", "", "1"]),
        ]
        for href, pairs, _ in rows:
            _, of_two = await get(client, href)
            counts = re.findall(r'/case/\d+#pairs">(\d+)</a>', of_two)
            assert sum(map(int, counts)) == int(pairs), f"{href} lists other pairs"
        assert 'scope="row">not known</th>' in page
        _, source = await get(client, links(page)[INDIC])
        assert "no verdict of plagiarism, 0 open" in source and "copier/one" in source


async def test_undecided_stories_of_an_author_are_hidden_from_the_page(
    tmp_path: Path, ledger: sqlite3.Connection
) -> None:
    address, readers = "/author/copier%2Fone", tmp_path / "moderators.toml"
    async with named_client(tmp_path) as client:
        _, page = await get(client, address)
        record = re.findall(r'data-head="[^"]*\(?(?:upheld|dismissed)?\)?">(\d*)</td>', page.partition("</table>")[0])
        assert record == ["1", "", "1", "", "", ""], "upheld, dismissed and open copies by and of the author"
        form = hidden_fields(page)
        assert (await send(client, f"{address}/hide", form | {"note": NOTE}))[:2] == (303, address)
        _, page = await get(client, address)
        assert "are hidden, by <bdi>Asha</bdi>" in page and f'<q dir="auto">{NOTE}</q>' in page
        for story, is_hidden in ((1003, True), (2001, True), (1000, False)):
            assert ("asked to hide this story" in (await get(client, f"/story/{story}"))[1]) == is_hidden, story
        give_verdict(ledger, [(2000, 2001)], Verdict.QUOTATION)
        assert "asked to hide this story" not in (await get(client, "/story/2001"))[1], "it is decided"
        for name, cases in (("All cases", "2 cases"), ("Open cases", "1 case")):
            [listed] = re.findall(rf'href="([^"]*)">{name} of the author', page)
            assert f"<h1>{cases} of author" in (await get(client, listed))[1]
        assert (await send(client, f"{address}/show", form))[:2] == (303, address)
        _, page = await get(client, address)
        assert "shown again by <bdi>Asha</bdi>" in page and "asked to hide" not in (await get(client, "/story/1003"))[1]
    for rights, languages in (({Right.READ}, ()), ({Right.DECIDE}, (TAMIL,))):
        readers.unlink(missing_ok=True)
        secret = add_moderator(readers, Moderator("Kamala", rights=frozenset(rights), languages=languages))
        async with desk(tmp_path, moderators=readers) as client:
            await sign_in(client, secret)
            form = hidden_fields((await get(client, address))[1], "out") | {"note": NOTE}
            status, _, page = await send(client, f"{address}/hide", form)
            assert (status, f"{NOTE}</textarea>" in page) == (403, True)
    assert ledger.execute("SELECT count(*) FROM hidden_authors WHERE shown_at IS NULL").fetchone() == (0,)


async def test_history_of_each_author_stands_on_pairs_and_stories(tmp_path: Path, ledger: sqlite3.Connection) -> None:
    async with named_client(tmp_path) as client:
        for path in ("/pair/1000/1003", "/story/1003", "/story/2001"):
            assert "(1 story with the verdict plagiarism, 2 open)" in (await get(client, path))[1], path
        assert "(no verdict of plagiarism, 0 open)" in (await get(client, "/pair/1000/1003"))[1]
        _, listed = await get(client, "/authors")
        assert re.findall(r'<td class="n"[^>]*>(\d+)</td>', listed) == ["1", "2", "4"], (
            "the verdicts, stories and pairs"
        )
        ledger.execute("UPDATE stories SET published_at = NULL")
        _, page = await get(client, "/story/1003")
        assert "(no verdict of plagiarism, 0 open; 4 pairs of unknown order)" in page
        assert COPIER not in (await get(client, "/authors"))[1]
        for path in ("/authors", "/author/copier%2Fone"):
            assert not re.search(r"\b(first|original|earlier)\b", (await get(client, path))[1], re.IGNORECASE), path
