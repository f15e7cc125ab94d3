"""The style sheet: every text has enough contrast in the light and the dark scheme, and every script has its fonts.

The limits are those of WCAG 2.2, level AA: 4.5 for text, 3 for graphics.
"""

import re
from importlib.resources import files
from itertools import product

import pytest
from neardup.core.languages import LANGUAGES, SHIPPED
from neardup.moderation.evidence.story_report import COLOURS
from neardup.moderation.templating import load_assets
from neardup.records import Language

REPORT = (files("neardup.moderation") / "static" / "report.css").read_text(encoding="utf-8")
STYLE = load_assets(SHIPPED).style + REPORT
SOURCES = [f"source-{n}" for n in range(COLOURS + 1)]
TEXTS = [
    *product(("ink", "faint", "accent"), ("paper", "card")),
    *product(("ink", "accent", "faint"), ("copied",)),
    *product(("ink", "accent"), ("flash",)),
    ("changed-a-ink", "changed-a"),
    ("changed-b-ink", "changed-b"),
    ("warning-ink", "warning"),
    ("card", "accent"),  # the letters A and B in the graph of a cluster
    *product(("ink",), SOURCES),
    *((f"{source}-edge", source) for source in SOURCES),  # the number at the beginning of a passage
    *(("card", f"{source}-edge") for source in SOURCES),  # the number in the list of sources
]
GRAPHICS = [
    *product(("accent", "faint"), ("paper", "card", "copied")),  # focus rings, borders of fields
    ("copied-edge", "card"),
    *((f"{source}-edge", behind) for source in SOURCES for behind in ("paper", "card")),
    ("changed-a-ink", "paper"),  # the weakest flag
]
DECORATION = {"line"}  # separators without meaning of their own, which need no contrast


def colours(block: str) -> dict[str, str]:
    return dict(re.findall(r"--([\w-]+):\s*(#[0-9a-f]{6});", block))


BLOCKS = re.findall(r":root \{(.*?)\}", STYLE, re.DOTALL)  # in each sheet: light, then dark
LIGHT, DARK = colours("".join(BLOCKS[::2])), colours("".join(BLOCKS[1::2]))


def luminance(colour: str) -> float:
    parts = [int(colour[n : n + 2], 16) / 255 for n in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(first: str, second: str) -> float:
    low, high = sorted((luminance(first), luminance(second)))
    return (high + 0.05) / (low + 0.05)


def test_contrast_follows_its_definition() -> None:
    assert contrast("#ffffff", "#000000") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


@pytest.mark.parametrize("scheme", [LIGHT, DARK], ids=["light", "dark"])
def test_every_text_has_enough_contrast(scheme: dict[str, str]) -> None:
    for text, behind in TEXTS:
        assert contrast(scheme[text], scheme[behind]) >= 4.5, f"{text} on {behind}"
    for graphic, behind in GRAPHICS:
        assert contrast(scheme[graphic], scheme[behind]) >= 3, f"{graphic} on {behind}"


def test_every_colour_is_tested() -> None:
    assert set(LIGHT) == set(DARK) == {name for pair in (*TEXTS, *GRAPHICS) for name in pair} | DECORATION
    rules = re.sub(r":root \{.*?\}", "", STYLE, flags=re.DOTALL)
    assert not re.findall(r"#[0-9a-f]{3,8}\b|\brgba?\(|\bhsl", rules), "a colour is not covered by this test"


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_script_has_fonts_and_line_height(language: Language) -> None:
    entry = SHIPPED[language]
    stacks = re.findall(rf":lang\({entry.code}\)[^{{]*\{{ --story: ([^;]*);", STYLE)
    assert stacks == [", ".join([*(f'"{font}"' for font in entry.fonts), "serif"])] * bool(entry.fonts)
    assert any(font.startswith("Noto") for font in entry.fonts) or language == "ENGLISH"
    heights = dict(re.findall(r"^(\.words[^{\n]*) \{[^}]*line-height: ([\d.]+)", STYLE, re.MULTILINE))
    assert all(float(height) >= 1.7 for rule, height in heights.items() if rule != ".words:lang(en)")
    assert ".words" in heights


def test_style_and_script_make_no_requests() -> None:
    page = load_assets(SHIPPED)
    assert not re.findall(r"url\(|@import|https?:", STYLE)
    assert not re.findall(r"https?:|fetch\(|innerHTML|eval\(", page.script)
    assert "</" not in page.style + page.script, "it would close the element that embeds it"
