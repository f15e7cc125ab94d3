"""Laws of a page's title: it is the title of the head, else the first heading, in any encoding; on one line."""

import re
from time import perf_counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from neardup.core.text import html as title_module
from neardup.core.text.html import MOST_TITLE_CHARACTERS, OPENING_WORDS, cut_opening, find_title

HEAD = "<!doctype html><html><head><title>{}</title></head><body><h1>heading</h1><p>words</p>"


@pytest.mark.parametrize(
    ("page", "title"),
    [
        (HEAD.format("कहानी &amp; घर"), "कहानी & घर"),
        (HEAD.format("  two\n lines "), "two lines"),
        (HEAD.format(""), "heading"),
        ("<h2>second</h2><h1>மஞ்சள் <b>உறை</b></h1><p>words", "மஞ்சள் உறை"),
        ("<svg><title>an icon</title></svg><h2>ଗପ</h2>", "ଗପ"),
        ("<!-- <title>old</title> --><script>'<title>x</title>'</script><p>words", None),
        ("plain text, and no markup at all", None),
        ("", None),
    ],
)
def test_title_is_that_of_the_head_or_a_heading(page: str, title: str | None) -> None:
    assert find_title(page.encode(), None) == title


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
def test_title_is_read_in_every_encoding(encoding: str) -> None:
    assert find_title(HEAD.format("ഒരു കഥ").encode(encoding), None) == "ഒരു കഥ"
    assert find_title(HEAD.format("café").encode("latin-1"), "text/html; charset=iso-8859-1") == "café"


@given(st.binary(max_size=300), st.text(max_size=400))
def test_names_are_one_printable_line(page: bytes, text: str) -> None:
    for name in (find_title(page, None), find_title(f"<h1>{text}</h1><p>".encode("utf-8", "replace"), None)):
        assert name is None or (name and len(name) <= MOST_TITLE_CHARACTERS and name == " ".join(name.split()))
    first = cut_opening(text)
    assert len(first) <= MOST_TITLE_CHARACTERS and len(first.split()) <= OPENING_WORDS
    assert not set(first) & set("\n\r\t\0\x1b")


PARTS = st.sampled_from(
    [
        *(
            "<!doctype html>",
            "<html lang=hi>",
            "<html>",
            "<head>",
            '<meta charset="utf-8">',
            "<meta name=a content='b c'/>",
        ),
        *(
            "<link href=/a?b=c rel=icon>",
            '<meta a="b>c">',
            '<meta a=b" c="d>',
            "<meta a=b'>",
            "<meta/a=b>",
            "<Link A />",
        ),
        *(
            "<style>s</style>",
            "<title>",
            "</title>",
            "<TITLE>",
            "कहानी ",
            "a",
            "&amp;",
            "<!-- c -->",
            "<b>",
            "\n",
            "\x0b",
        ),
        *("\x0c", "\r", "\u2028", "\x01", "\ufffd", "<p>", "<script>", "</head>", "<body>", "<h1>h</h1>"),
    ]
)


@given(st.lists(PARTS, max_size=4).map("".join), st.lists(PARTS, max_size=3).map("".join))
def test_a_title_is_found_without_a_parser_as_with_one(before: str, within: str) -> None:
    page = f"{before}<title>{within}</title></head><body>".encode()
    found = find_title(page, None)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(title_module, "PLAIN_TITLE", re.compile("(?!)"))
        assert found == find_title(page, None)


def test_long_page_costs_no_more_than_its_start() -> None:
    page = HEAD.format("t").encode() + b"<p>word</p>" * 1_000_000
    began = perf_counter()
    assert find_title(page, None) == "t"
    assert perf_counter() - began < 1, "the whole page was read"
