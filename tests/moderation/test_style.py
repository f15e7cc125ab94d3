"""The style sheet: each text can be read on what is behind it, by day and by night, and each script has its fonts.

Contrast is WCAG 2.2's: 4.5 for text (AA), 3 for what is seen but not read.
"""

import re
from itertools import product

import pytest
from neardup.languages import LANGUAGES, SHIPPED
from neardup.moderation.templating import inlined
from neardup.records import Language

STYLE = inlined(SHIPPED).style
TEXTS = [
    *product(("ink", "faint", "accent"), ("paper", "card")),
    *product(("ink", "accent", "faint"), ("copied",)),
    *product(("ink", "accent"), ("flash",)),
    ("changed-a-ink", "changed-a"),
    ("changed-b-ink", "changed-b"),
    ("warning-ink", "warning"),
    ("card", "accent"),  # the letters of a pair, in a graph
]
SEEN = [
    *product(("accent", "faint"), ("paper", "card", "copied")),  # rings of focus, edges of fields
    ("copied-edge", "card"),
    ("changed-a-ink", "paper"),  # the weakest flag
]
SPACING = {"line"}  # of no meaning: it parts what space parts too


def colours(block: str) -> dict[str, str]:
    return dict(re.findall(r"--([\w-]+):\s*(#[0-9a-f]{6});", block))


LIGHT, DARK = (colours(block) for block in re.findall(r":root \{(.*?)\}", STYLE, re.DOTALL))


def luminance(colour: str) -> float:
    parts = [int(colour[n : n + 2], 16) / 255 for n in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_contrast_is_what_it_is_defined_to_be() -> None:
    assert contrast("#ffffff", "#000000") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


@pytest.mark.parametrize("scheme", [LIGHT, DARK], ids=["light", "dark"])
def test_text_can_be_read(scheme: dict[str, str]) -> None:
    for text, behind in TEXTS:
        assert contrast(scheme[text], scheme[behind]) >= 4.5, f"{text} on {behind}"
    for sign, behind in SEEN:
        assert contrast(scheme[sign], scheme[behind]) >= 3, f"{sign} on {behind}"


def test_every_colour_is_one_of_these() -> None:
    assert set(LIGHT) == set(DARK) == {name for pair in (*TEXTS, *SEEN) for name in pair} | SPACING
    rules = re.sub(r":root \{.*?\}", "", STYLE, flags=re.DOTALL)
    assert not re.findall(r"#[0-9a-f]{3,8}\b|\brgba?\(|\bhsl", rules), "a colour that no test knows"


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_script_has_its_fonts_and_room(language: Language) -> None:
    entry = SHIPPED[language]
    stacks = re.findall(rf":lang\({entry.code}\)[^{{]*\{{ --story: ([^;]*);", STYLE)
    assert stacks == [", ".join([*(f'"{font}"' for font in entry.fonts), "serif"])] * bool(entry.fonts)
    assert any(font.startswith("Noto") for font in entry.fonts) or language == "ENGLISH"
    heights = dict(re.findall(r"^(\.words[^{\n]*) \{[^}]*line-height: ([\d.]+)", STYLE, re.MULTILINE))
    assert all(float(height) >= 1.7 for rule, height in heights.items() if rule != ".words:lang(en)")
    assert ".words" in heights


def test_nothing_is_asked_of_anybody_else() -> None:
    page = inlined(SHIPPED)
    assert not re.findall(r"url\(|@import|https?:", page.style)
    assert not re.findall(r"https?:|fetch\(|innerHTML|eval\(", page.script)
    assert "</" not in page.style + page.script, "it would end the element that it is inlined in"
