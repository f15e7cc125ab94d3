"""Laws: what an override shows reversed is put in order, and what it shows as it is read stays."""

import pytest
import regex
from neardup.core.text.extraction import Extraction
from neardup.core.text.html import extract_visible_text
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
