"""Disguises whose words stand in another order than they are shown in."""

import html
from collections.abc import Callable
from functools import partial
from random import Random

import regex
from neardup.records import Language

from tests.support.disguises import Disguise, lines_of

ROW = "gap:.3em;justify-content:start"
SHUFFLED = {  # a style for the line, and one for word number {n}, in row {row} and column {column}
    "order in a flex box": (f"display:flex;flex-wrap:wrap;{ROW}", "order:{n}"),
    "order in a grid": (f"display:grid;grid-template-columns:repeat(9,auto);{ROW}", "order:{n}"),
    "rows and columns": (f"display:grid;{ROW}", "grid-row:{row};grid-column:{column}"),
    "areas": (f"display:grid;{ROW}", "grid-area:{row} / {column}"),
    "negative areas": (
        f"display:grid;grid-template:repeat(60,auto) / repeat(9,auto);{ROW}",
        "grid-area:calc({row} - 61) / calc({column} - 10)",
    ),
    "lines with a name": (
        f"display:grid;grid-template:repeat(60,[a] auto) / repeat(9,[b] auto);{ROW}",
        "grid-row:a {row};grid-column:{column} b",
    ),
    "ends of areas": (f"display:grid;{ROW}", "grid-row-end:calc({row} + 1);grid-column-end:calc({column} + 1)"),
    "calculated order": (f"display:flex;flex-wrap:wrap;{ROW}", "order:calc({n} + 0)"),
    "positions": ("position:relative;height:20em", "position:absolute;left:{column}00px;top:{row}em"),
    "positions from the right": (
        "position:relative",
        "position:absolute;right:calc(1000px - {column}00px);top:{row}em",
    ),
    "positions from below": ("position:relative", "position:absolute;left:{column}00px;bottom:calc(40em - {row}em)"),
    "insets": ("position:relative", "position:absolute;inset:{row}em auto auto {column}00px"),
    "margins": ("position:relative", "position:absolute;margin:{row}em 0 0 {column}00px"),
    "translations": ("position:relative", "position:absolute;transform:translate({column}00px,{row}em)"),
}
REVERSED = {
    "row-reverse": (f"display:flex;flex-direction:row-reverse;{ROW}", ""),
    "flex-flow": (f"display:inline-flex;flex-flow:row-reverse;{ROW}", ""),
    "column-reverse": ("display:flex;flex-direction:column-reverse", ""),
    "a flex box to the left": (f"display:flex;direction:rtl;{ROW}", ""),
    "boxes to the left": ("direction:rtl", "display:inline-block;margin-left:.3em"),
    "floats": ("overflow:auto", "float:right;margin-left:.3em"),
}
COLUMNS = 9


def _arranged(line_style: str, word_style: str, *, is_shuffled: bool) -> Callable[[str, Language], str]:
    def page(text: str, _: Language) -> str:
        chance, out = Random(1), []
        for line in lines_of(text):
            words = list(enumerate(line.split()))
            if is_shuffled:
                chance.shuffle(words)
            else:
                words.reverse()
            spans = "".join(f"<span style='{_placed(word_style, n)}'>{html.escape(word)}</span>" for n, word in words)
            out.append(f"<div style='{line_style}'>{spans}</div>")
        return "".join(out)

    return page


def _placed(style: str, n: int) -> str:
    return style.format(n=n, row=n // COLUMNS + 1, column=n % COLUMNS + 1)


def _named_areas(text: str, _: Language) -> str:
    """Words in any order, each in the area of its name."""
    chance, out = Random(1), []
    for line in lines_of(text):
        words = list(enumerate(line.split()))
        rows = [" ".join(f"w{n}" for n, _ in words[at : at + COLUMNS]) for at in range(0, len(words), COLUMNS)]
        rows[-1] += " ." * (-len(words) % COLUMNS)
        chance.shuffle(words)
        spans = "".join(f"<span style='grid-area:w{n}'>{html.escape(word)}</span>" for n, word in words)
        areas = " ".join(f'"{row}"' for row in rows)
        out.append(f"<div style='display:grid;grid-template-areas:{areas};{ROW}'>{spans}</div>")
    return "".join(out)


def _filled_by_columns(text: str, _: Language) -> str:
    """The words of each column of a grid, one column after the other."""
    out = []
    for line in lines_of(text):
        words = line.split()
        rows = -(-len(words) // COLUMNS)
        words += [""] * (rows * COLUMNS - len(words))
        spans = "".join(f"<span>{html.escape(word)}</span>" for n in range(COLUMNS) for word in words[n::COLUMNS])
        style = f"display:grid;grid-auto-flow:column;grid-template-rows:repeat({rows},auto);{ROW}"
        out.append(f"<div style='{style}'>{spans}</div>")
    return "".join(out)


def _reversed_letters(text: str, _: Language) -> str:
    """Each word as a flex box of letters."""

    def box(word: str) -> str:
        letters = "".join(f"<i>{html.escape(letter)}</i>" for letter in reversed(regex.findall(r"\X", word)))
        return f"<span style='display:inline-flex;flex-direction:row-reverse'>{letters}</span>"

    return "".join(f"<p>{' '.join(map(box, line.split()))}</p>" for line in lines_of(text))


def _floating_letters(text: str, _: Language) -> str:
    """Each word as a box of letters that float to the right."""

    def box(word: str) -> str:
        letters = "".join(
            f"<i style='float:right'>{html.escape(letter)}</i>" for letter in reversed(regex.findall(r"\X", word))
        )
        return f"<span style='display:inline-block'>{letters}</span>"

    return "".join(f"<p>{' '.join(map(box, line.split()))}</p>" for line in lines_of(text))


def _shuffled_words(shown: str, around: str) -> Callable[[str, Language], str]:
    """Words in any order, each shown as markup by its number; the markup around them has a slot for each."""

    def page(text: str, _: Language) -> str:
        chance, out = Random(1), []
        for line in lines_of(text):
            words = list(enumerate(line.split()))
            slots = " ".join(f"<slot name=s{n}></slot>" for n, _ in words)
            chance.shuffle(words)
            marked = "".join(shown.format(html.escape(word), n=n, x=n % 9 * 99, y=n // 9 * 20) for n, word in words)
            out.append(around.format(marked, slots=slots))
        return "".join(out)

    return page


order = partial(Disguise, "order")

BY_ORDER = (
    *(order(name, _arranged(*styles, is_shuffled=True)) for name, styles in SHUFFLED.items()),
    *(order(name, _arranged(*styles, is_shuffled=False)) for name, styles in REVERSED.items()),
    order("areas with a name", _named_areas),
    order("cells filled by columns", _filled_by_columns),
    order("letters in flex boxes", _reversed_letters),
    order("letters that float", _floating_letters),
    order(
        "named slots",
        _shuffled_words("<b slot=s{n}>{}</b>", "<div><template shadowrootmode=open>{slots}</template>{}</div>"),
    ),
    order("texts of svg", _shuffled_words("<text x={x} y={y}>{} </text>", "<svg>{}</svg>")),
)
