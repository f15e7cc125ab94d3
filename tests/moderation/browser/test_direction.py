"""Law of mixed directions: where titles, names, authors, moderators and notes are Urdu with numbers and Latin words,
the text around each stands on the screen in the order in which it is written, and the Urdu runs from right to left.
"""

from contextlib import closing
from pathlib import Path

import pytest
from neardup.ledger import connect, read, verdicts
from neardup.records import Verdict
from playwright.sync_api import Browser

from tests.moderation.browser.conftest import filled
from tests.support.command import Neardup
from tests.support.desk_browser import NARROW, WIDE, serving, signed_in
from tests.support.desk_client import ALPHABET, prose, write

ARABIC = str.maketrans({letter: chr(0x0628 + n % 19) for n, letter in enumerate(ALPHABET)})
MODERATOR, NOTE = "علی 2", "ٹھیک 5 (ok)"
NAMES = "12-کہانی", "کہانی 13", "14 کہانی x"
PAGES = ("/?status=every", "/case/{0}?at=0", "/story/{0}", "/pair/{1}/{2}", "/author/علی%203", "/authors", "/decisions",
         "/statistics", "/search?q=حصہ", "/search?q=قصہ%207%20(none)")  # fmt: skip
# The places in the text of a page where letters do not stand in their order: outside of what is isolated from left to
# right, and within what is isolated in the direction that it has.
DISORDER = """() => {
  const rightToLeft = /[\\u0590-\\u08ff\\ufb1d-\\ufefc]/;
  const isolate = (node) => node.parentElement.closest("main bdi, main [dir], body > nav bdi, header bdi");
  const blockOf = (node) => {
    let block = node.parentElement;
    while (getComputedStyle(block).display === "inline") block = block.parentElement;
    return block;
  };
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), found = [];
  const latest = new Map();
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const parent = node.parentElement, inside = isolate(node);
    if (!node.data.trim() || parent.closest("script, textarea, .unseen, .skip") || !parent.checkVisibility()) continue;
    const runs = inside && getComputedStyle(inside).direction === "rtl" ? -1 : 1, key = inside || blockOf(node);
    for (let n = 0; n < node.length; n++) {
      if (!/[\\p{L}\\p{N}]/u.test(node.data[n]) || (runs < 0 && !rightToLeft.test(node.data[n]))) continue;
      if (inside && runs > 0 && rightToLeft.test(node.data[n])) continue;
      const range = document.createRange();
      range.setStart(node, n);
      range.setEnd(node, n + 1);
      const [box] = range.getClientRects(), before = latest.get(key);
      if (!box || !box.width) continue;
      if (before && Math.abs(before.bottom - box.bottom) < box.height / 2 && runs * (box.left - before.left) < -0.5)
        found.push(`${node.data.trim().slice(0, 60)} at ${node.data[n]} in ${parent.outerHTML.slice(0, 90)}`);
      latest.set(key, box);
    }
  }
  return found;
}"""


@pytest.fixture(scope="module")
def urdu(tmp_path_factory: pytest.TempPathFactory) -> Neardup:
    """A ledger of three copies of an Urdu story with hostile names, with a verdict of MODERATOR."""
    folder = tmp_path_factory.mktemp("urdu")
    text = f"<p>{prose(1).translate(ARABIC)} (12 km) {prose(2).translate(ARABIC)}</p>"
    stories = [(1, "قصہ 12 (حصہ 3) - part 4", text), (2, "3 دن, Vol. 2", text), (3, "قصہ 7!", text)]
    neardup = filled(
        folder,
        write(folder / "corpus", stories, id=NAMES, language=["ur"] * 3, author_id=["علی 3", "علی 4", "b 5 علی"]),
    )
    with closing(connect(neardup.ledger)) as db:
        (flag_id,) = db.execute("SELECT flag_id FROM flags ORDER BY a, b LIMIT 1").fetchone()
        verdicts.decide(db, [flag_id], Verdict.PLAGIARISM, NOTE, MODERATOR, verdicts.identify_state(db, [flag_id]))
    return neardup


def ids(neardup: Neardup) -> list[int]:
    with closing(read(neardup.ledger)) as db:
        return [row[0] for row in db.execute("SELECT id FROM stories ORDER BY id")]


def test_text_stands_in_its_order_beside_urdu(browser: Browser, urdu: Neardup, shots: Path) -> None:
    with serving(urdu) as desk, signed_in(browser, desk, shots, MODERATOR) as ali:
        for n, path in enumerate(PAGES):
            page = ali.go(path.format(*ids(urdu)))
            for width, height in (NARROW, WIDE):
                page.set_viewport_size({"width": width, "height": height})
                assert page.evaluate(DISORDER) == [], f"{path} at {width} pixels"
            ali.shot(f"urdu-{n}")
        ali.expect_status(404)
