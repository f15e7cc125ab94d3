"""The plot of two serials: a moderator enters a pair of chapters from it and sees the copied words."""

from collections.abc import Iterator
from contextlib import closing

import pytest
from neardup.ledger import connect, serials, transaction
from playwright.sync_api import expect

from tests.moderation.browser.conftest import restore
from tests.support.command import Neardup
from tests.support.desk_browser import Desk, Moderator, find_violations

CHAPTERS = 3


@pytest.fixture
def chapters(desk: Desk, samples: Neardup) -> Iterator[list[tuple[int, int]]]:
    """Pairs of stories that are flagged: the chapters of one author's serial, and of another's."""
    with closing(connect(desk.neardup.ledger)) as db:
        flagged = db.execute("SELECT a, b FROM flags WHERE kind = 'similar' AND status = 'open' ORDER BY a, b")
        of_source = dict(flagged.fetchall())
        chosen = list({b: (a, b) for a, b in of_source.items() if b not in of_source}.values())[:CHAPTERS]
        with transaction(db):
            for part, (a, b) in enumerate(chosen, 1):
                for author, story_id in (("river", a), ("house", b)):
                    title = f"{author} part {part}"
                    db.execute("UPDATE stories SET author_id = ?, title = ? WHERE id = ?", (author, title, story_id))
        serials.refresh(db)
    yield chosen
    restore(desk.neardup, samples)


def test_a_pair_of_chapters_is_entered_from_the_plot(asha: Moderator, chapters: list[tuple[int, int]]) -> None:
    page = asha.go("/serials/{}/{}".format(*chapters[0]))
    squares = page.locator("svg.dots a")
    assert squares.count() == CHAPTERS
    for width in asha.windows():
        assert asha.fits(), f"the plot is wider than {width} pixels"
    assert not find_violations(page)
    places = [(box["x"], box["y"]) for n in range(CHAPTERS) if (box := squares.nth(n).bounding_box())]
    assert places == sorted(places) and len({top for _, top in places}) == CHAPTERS, "the squares are no diagonal"
    asha.shot("serials")
    squares.nth(1).click()
    page.wait_for_url("**/pair/{}/{}".format(*chapters[1]))
    for side in "ab":
        expect(page.locator(f"article[data-side={side}] mark").first).to_be_visible()
