"""Law: the words of a grid are read in the order of the boxes that Chromium shows."""

import random
from collections import Counter

from neardup.core.text.extraction import Extraction
from neardup.core.text.html import extract_visible_text

from tests.support.desk_browser import chromium
from tests.support.sampling import CHAOS

PAGES = min(1000 * CHAOS, 5_000)
WORDS = ("amber", "birch", "cedar", "delta", "ember", "fjord", "grove", "heron", "iris")
AREAS = "'a b c' 'd e f' 'g h i'"
TRACKS = (
    "3em 3em 3em",
    "repeat(2, 4em)",
    "[p] 3em [q] 3em [r s] 3em [t]",
    "repeat(3, [x] 3em)",
    "minmax(2em, 4em) 4em",
)
LINES = (
    "auto",
    "1",
    "2",
    "-1",
    "-2",
    "3",
    "span 2",
    "p",
    "q",
    "r",
    "t",
    "x 2",
    "calc(1 + 1)",
    "2 / 3",
    "1 / span 2",
    "a",
    "b-end",
)
SHOWN = """(pages) => pages.map((markup) => {
    document.body.innerHTML = markup;
    const boxes = [...document.querySelectorAll('i')].map(one => [one.textContent, one.getBoundingClientRect()]);
    return boxes.map(([word, box]) => [word, Math.round(box.top), Math.round(box.left)]);
})"""


def generated_grid(rng: random.Random) -> str:
    """A grid of words with chosen and named lines, areas, spans, order and flow."""

    def perhaps(share: float, *choices: str) -> str:
        return rng.choice(choices) + ";" if rng.random() < share else ""

    rows, columns = rng.choice(TRACKS), rng.choice(TRACKS)
    box = perhaps(
        0.7, f"grid-template-columns:{columns}", f"grid-template:{rows} / {columns}", f"grid:{rows} / {columns}"
    )
    box += perhaps(0.4, f"grid-template-rows:{rows}") + perhaps(0.4, f"grid-template-areas:{AREAS}")
    box += perhaps(
        0.5, "grid-auto-flow:column", "grid-auto-flow:dense", "grid-auto-flow:column dense", "grid: auto-flow / 3em 3em"
    )
    share = rng.choice((0.0, 0.3, 1.0))
    words = [
        f"<i style='{_lines(rng, share)}{perhaps(0.3, 'order:1', 'order:-1', 'order:calc(1 + 2)')}'>{word}</i>"
        for word in WORDS[: rng.randint(3, len(WORDS))]
    ]
    rng.shuffle(words)
    return f'<p style="display:grid;width:30em;{box}">{" ".join(words)}</p>'


def _lines(rng: random.Random, share: float) -> str:
    if rng.random() >= share:
        return ""
    row = rng.choice([line for line in LINES if "span" not in line])  # a row with nothing of its own has no height
    column = rng.choice(LINES)
    return rng.choice(
        (
            f"grid-row:{row};grid-column:{column};",
            f"grid-row:{row};",
            f"grid-column:{column};",
            f"grid-area:{rng.choice('abcdefghi')};",
        )
    )


def test_the_words_of_a_grid_are_read_as_a_browser_shows_them() -> None:
    rng = random.Random(CHAOS)
    pages = [generated_grid(rng) for _ in range(PAGES)]
    differ = list[tuple[str, str, list[str]]]()
    with chromium() as browser:
        boxes_of_pages = browser.new_page().evaluate(SHOWN, pages)
    for markup, boxes in zip(pages, boxes_of_pages, strict=True):
        if max(Counter((top, left) for _, top, left in boxes).values()) > 1:
            continue  # which of two words over each other is read first does not matter
        shown = [word for word, _, _ in sorted(boxes, key=lambda box: box[1:])]
        if (read := "".join(extract_visible_text(markup, Extraction()).split())) != "".join(shown):
            differ.append((markup, read, shown))
    shortest = min(differ, key=lambda difference: len(difference[0]), default=None)
    assert not shortest, f"{len(differ)} grids differ: the page, its text, and what the browser shows: {shortest}"
