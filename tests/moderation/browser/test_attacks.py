"""Attacks in the title, author and text of stories fail: nothing is run, rendered as markup, wider than the page, or
logged.
"""

from collections.abc import Callable, Iterator
from contextlib import closing
from html import escape
from pathlib import Path

import pytest
from neardup.ledger import read
from playwright.sync_api import Browser, expect

from tests.moderation.browser.conftest import filled
from tests.support.command import Neardup
from tests.support.desk_browser import Desk, Moderator, serving, signed_in
from tests.support.desk_client import prose, write
from tests.support.sampling import sample_cases

ATTACKS = {
    "script": "<script>alert(1)</script><img src=x onerror=alert(2)><svg onload=alert(3)>",
    "attribute": "\" onmouseover=alert(1) x='><iframe src=javascript:alert(2)></iframe>",
    "template": "{{ 7 * 7 }} {% include 'base.html.j2' %} ${7*7}",
    "closing": "</mark></p></div></textarea></title></bdi><style>* { display: none }</style><!--",
    "direction": "\u202egnp.exe\u202d \u2066 \u202b abc \u2067",
    "long": "क" * 10_000,
    "marks": "क" + "्" * 500 + "ा" * 500,
    "controls": "a\x01b\x1b[31mred\x7f\x85c\u2028d\u2029e\ufeff",
    "link": "<a href='http://evil.example/'>click</a> <form action=http://evil.example><button>x</button></form>",
    "formula": '=HYPERLINK("http://evil.example")',
    "null": "before\x00after",
}


@pytest.fixture(scope="module")
def attacked(tmp_path_factory: pytest.TempPathFactory) -> Neardup:
    """A ledger with a pair for each attack."""
    folder = tmp_path_factory.mktemp("attacks")
    stories = []
    for n, attack in enumerate(ATTACKS.values()):
        text = f"<p>{prose(n)} {escape(attack)} {prose(100 + n)}</p><script>alert('page')</script>"
        stories += [(1000 + 2 * n + side, f"{attack} {side}", text) for side in (0, 1)]
    authors = [attack for attack in ATTACKS.values() for _ in (0, 1)]
    return filled(folder, write(folder / "corpus", stories, author_id=authors))


@pytest.fixture(scope="module")
def desk(attacked: Neardup) -> Iterator[Desk]:
    with serving(attacked) as open_desk:
        yield open_desk


@pytest.fixture
def asha(browser: Browser, desk: Desk, shots: Path) -> Iterator[Moderator]:
    with signed_in(browser, desk, shots) as moderator:
        moderator.page.on("request", lambda request: _report_foreign_request(moderator, request.url))
        yield moderator


def _report_foreign_request(moderator: Moderator, url: str) -> None:
    if not url.startswith(moderator.address):
        moderator.problems.append(f"a request to another site: {url}")


def pairs(desk: Desk) -> list[tuple[int, int]]:
    with closing(read(desk.neardup.ledger)) as db:
        return [tuple(row) for row in db.execute("SELECT a, b FROM flags ORDER BY a")]


def test_every_attack_is_flagged(desk: Desk) -> None:
    assert len(pairs(desk)) >= len(ATTACKS) - 1, "the attacks are not flagged, so the pages do not show them"


def test_queue_shows_attacks_as_text(asha: Moderator, desk: Desk) -> None:
    rows, shown = 0, ""
    for page_number in (1, 2):
        page = asha.go(f"/?status=every&authors=same&page={page_number}")
        rows += page.locator("a.row").count()
        shown += page.inner_text(".queue")
        for width in asha.windows():
            assert asha.fits(), f"a long word is wider than {width} pixels"
            tall = "Math.max(...[...document.querySelectorAll('.queue > li')].map(row => row.offsetHeight))"
            assert page.evaluate(tall) < 1000, f"a title fills the screen of {width} pixels"
            asha.shot(f"attacks-queue-{page_number}-{width}")
    assert rows == len(pairs(desk)), "each pair is a case"
    assert "<script>alert(1)</script>" in shown and "{{ 7 * 7 }}" in shown


def test_pages_of_pairs_cases_and_stories_show_attacks_as_text(asha: Moderator, desk: Desk) -> None:
    others = [path for a, b in pairs(desk) for path in (f"/case/{a}", f"/story/{b}")]
    for path in (*(f"/pair/{a}/{b}" for a, b in pairs(desk)), *sample_cases(others, 8)):
        page = asha.go(path)
        for width in asha.windows():
            if path.startswith("/pair/"):
                expect(page.get_by_role("button", name="Plagiarism")).to_be_visible()
                asha.shot(f"attack-{path.split('/')[2]}-{width}", whole=False)
            assert asha.fits(), f"{path} is wider than {width} pixels"
        assert not page.locator("main iframe, main img, main script, main style, main form[action^=http]").count()
        assert "\u202e" not in page.content(), "a direction override is on the page"


def test_search_and_notes_show_attacks_as_text(asha: Moderator, desk: Desk) -> None:
    a, b = pairs(desk)[0]
    for attack in sample_cases([*ATTACKS.values()], 5):
        page = asha.go("/")
        page.get_by_label("Story, author").fill(attack[:100])
        page.get_by_role("button", name="Search").click()
        page.wait_for_url(lambda url: "/author/" in url or "/search" in url)
        assert all(asha.fits() for _ in asha.windows()), attack
        asha.expect_status(404)
    page = asha.go(f"/pair/{a}/{b}")
    page.get_by_label("Note").fill("".join(ATTACKS.values())[:2000])
    page.get_by_role("button", name="Plagiarism").click()
    page = asha.go(f"/pair/{a}/{b}")
    assert all(asha.fits() for _ in asha.windows()), "the note is wider than the window"
    expect(page.locator("blockquote").first).to_contain_text("<script>alert(1)</script>")


def test_attacks_and_input_are_not_logged(
    browser: Browser, private_copy: Callable[[Neardup], Neardup], attacked: Neardup, shots: Path
) -> None:
    with serving(private_copy(attacked)) as desk, signed_in(browser, desk, shots, "SECRETNAME") as asha:
        for a, b in pairs(desk):
            asha.go(f"/pair/{a}/{b}")
        page = asha.go("/search?q=SECRETSEARCH")
        asha.expect_status(404)
        page = asha.go(f"/pair/{a}/{b}")
        page.get_by_label("Note").fill("SECRETNOTE")
        page.keyboard.press("Escape")
        page.keyboard.press("5")
        page.wait_for_url("**done=**")
        assert desk.end() == 0
        logged = "".join(desk.log)
    assert '"verdict": "not_similar"' in logged, "the verdict is not logged"
    for secret in ("SECRET", "alert", "evil", "क", prose(0)[:20], "HYPERLINK", "GET", "Traceback"):
        assert secret not in logged, f"{secret!r} is logged: {logged}"
