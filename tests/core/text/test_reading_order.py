"""Laws: what an override shows reversed is put in order, and what it shows as it is read stays."""

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st
from neardup.core.text.extraction import Extraction
from neardup.core.text.html import extract_visible_text
from neardup.core.text.normalize import tokenize
from neardup.core.text.reading_order import put_in_reading_order
from neardup.records import Language

from tests.support.languages import SAMPLED
from tests.support.sample_texts import STORIES

URDU = "ایک دن کا ذکر ہے"


def reversed_letters(text: str) -> str:
    return "".join(reversed(regex.findall(r"\P{M}[\p{M}\u200c\u200d]*", text)))


@pytest.mark.parametrize("language", SAMPLED)
def test_reversed_lines_are_put_in_order(language: Language) -> None:
    lines = [line for line in STORIES[language][0].split("\n") if line.strip()]
    shown = "\n".join(f"1 \u202e{reversed_letters(line)}\u202c 2" for line in lines)
    assert put_in_reading_order(shown) == "\n".join(f"1 {line}\u202c 2" for line in lines)
    markup = "<br>".join(map(reversed_letters, lines))
    [text] = [extract_visible_text(f'<p><bdo dir="rtl">{markup}</bdo></p>', Extraction())]
    assert text.split() == " ".join(lines).split()


def test_an_override_ends_with_its_line() -> None:
    assert put_in_reading_order("\u202eeno\ntwo") == "one\ntwo"


@pytest.mark.parametrize(
    ("shown", "read"),
    [
        (f"\u202e{URDU}\u202c", f"{URDU}\u202c"),
        (f"\u202d{reversed_letters(URDU)}\u202c", f"{URDU}\u202c"),
        ("\u202done two\u202c", "one two\u202c"),
        ("\u202e12 !\u202c", "12 !\u202c"),
    ],
)
def test_each_script_has_its_own_direction(shown: str, read: str) -> None:
    assert put_in_reading_order(shown) == read


@pytest.mark.parametrize(
    ("markup", "read"),
    [
        ('<p dir="rtl">one two</p>', "one two"),
        ('<bdo dir="ltr">one two</bdo>', "one two"),
        ('<p dir="rtl"><bdo>eno</bdo> two</p>', "one two"),
        ('<p style="direction:rtl; unicode-bidi:bidi-override">eno<b>xis</b></p>', "sixone"),
        ("<style>.x{direction:rtl;unicode-bidi:isolate-override}</style><p class=x>eno</p>two", "one two"),
    ],
)
def test_styles_and_attributes_override_the_direction(markup: str, read: str) -> None:
    assert extract_visible_text(markup, Extraction()).split() == read.split()


@pytest.mark.parametrize(
    "shown",
    [
        # what ends an override, and what does not
        "\u2066\u202e\u2069one two",
        "\u202d\u202e\u202c\u202cone two",
        "\u2066\u202e\u202c\u202c\u2069one two",
        "\u202e\u202b\u202cowt eno",
        "\u202e\u2069owt eno",
        "\u202a" * 200 + "\u202eone two",
        "\u202a" * 100 + "\u202c" * 100 + "\u202eowt eno",
        # parts that are shown as one
        "\u202eowt\u202c \u202eeno",
        "".join(f"\u202e{letter}\u202c\u202a\u202c" for letter in "owt eno"),
        "\u202e\u202dtwo\u202c \u202done\u202c",
        "\u202e\u2066two\u2069 \u2066one\u2069",
        # boxes, which an override neither leaves nor enters
        "<bdi>\u202e</bdi>one two",
        "<output>&#x202e;</output>one two",
        "<span dir=auto>\u202e</span>one two",
        "<bdo dir=ltr>\u202e</bdo>one two",
        "<span style='unicode-bidi: isolate'>\u202e</span>one two",
        "<style>i { unicode-bidi: embed }</style><i>\u202e</i>one two",
        "<span style='display: inline-block'>\u202e</span>one two",
        "<span style='display: inline-block'>\u202eeno</span> two",
        "\u202e<bdi>one two</bdi>",
        "\u202e<span style='display: inline-block'>one two</span>",
        "\u202e<bdo dir=rtl>owt eno</bdo>",
        "<bdi style='unicode-bidi: normal'>\u202e</bdi>owt eno",
    ],
    ids=ascii,
)
def test_an_override_reaches_as_far_as_in_a_browser(shown: str) -> None:
    """Chromium shows each of these as `one two`."""
    text = extract_visible_text(f"<p>{shown}</p>", Extraction())
    assert tokenize(put_in_reading_order(text)) == [b"one", b"two"]


@given(st.lists(st.sampled_from([*map(chr, (*range(0x202A, 0x202F), *range(0x2066, 0x206A))), "a", "b c", "ا", "\n"])))
def test_reading_order_loses_no_letter(pieces: list[str]) -> None:
    text = "".join(pieces)
    letters = [sorted(filter(str.isalpha, line)) for line in text.split("\n")]
    assert [sorted(filter(str.isalpha, line)) for line in put_in_reading_order(text).split("\n")] == letters
