"""Laws: any bytes and any markup give text or NoStoryText, and nothing else; a page's words are those a reader sees,
whatever its charset and however that is told, or told wrongly.
"""

import codecs
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from neardup.core.text.html import Extraction, NoStoryText, decode, page_text, visible_text
from neardup.core.text.normalize import tokens
from neardup.languages import LANGUAGES
from neardup.records import Language, Skip

from tests.support.languages import ENGLISH, SAMPLED, TEXTS
from tests.support.paths import SAMPLES

WHOLE = Extraction()
STORY = Extraction("article .story, div.post-body", (".share", ".author-note"))
TAGS = ["html", "head", "body", "title", "script", "style", "template", "noscript", "svg", "math", "iframe", "select"]
TAGS += ["option", "table", "tr", "td", "a", "b", "p", "div", "br", "li", "h1", "pre", "textarea", "form", "plaintext"]
ATTRIBUTES = ["", " hidden", " class=story", " style='display:none'", " class='share", "/"]
TEXT = ["हिन्दी", "മലയാളം", "x", " ", "&amp;", "&#0;", "&#xd800;", "&nosuch;", "<", "<!--", "-->", "\0", "\ud800"]
opening = st.tuples(st.sampled_from(TAGS), st.sampled_from(ATTRIBUTES)).map(lambda made: f"<{made[0]}{made[1]}>")
soup = st.lists(st.one_of(opening, st.sampled_from(TAGS).map("</{}>".format), st.sampled_from(TEXT)), max_size=40)
LABELS = ["utf-8", "utf-16", "utf-16be", "utf-7", "gb18030", "iso-2022-jp", "hz-gb-2312", "big5", "x-user-defined"]
every_language = pytest.mark.parametrize("language", LANGUAGES)
unhurried = settings(deadline=None)
WESTERN = "“Zoë’s café,” he said – “déjà vu.” " * 20


def words(html: str, body: str = "", *strip: str) -> str:
    return b" ".join(tokens(visible_text(html, Extraction(body, strip)))).decode()


def two_words(language: Language) -> list[str]:
    return b" ".join(tokens(TEXTS[language])[:2]).decode().split()


def text_or_reason(body: bytes, content_type: str | None = None) -> str:
    try:
        return page_text(body, content_type, WHOLE)
    except NoStoryText as error:
        return error.reason


@unhurried
@given(st.binary(), st.none() | st.sampled_from(LABELS).map("text/html; charset={}".format) | st.text())
def test_any_bytes_are_text_or_unreadable(body: bytes, content_type: str | None) -> None:
    text_or_reason(body, content_type).encode()


@unhurried
@given(soup.map("".join), st.sampled_from([WHOLE, STORY, Extraction("p", ("p",)), Extraction("", ("body", "div, b"))]))
def test_any_markup_is_text_or_has_no_body(html: str, extraction: Extraction) -> None:
    reason: Skip | None = None
    try:
        visible_text(html, extraction).encode()
    except NoStoryText as error:
        reason = error.reason
    assert reason in {None, Skip.NO_BODY}


@unhurried
@given(st.binary(min_size=60, max_size=60))
def test_a_picture_is_not_text(noise: bytes) -> None:
    png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\4\0\0\0\3\0\x08\2\0\0\0" + bytes([0, 1, 2, 3, 255, 129]) * 40
    assert text_or_reason(png + noise, "image/png") == Skip.NOT_TEXT


@pytest.mark.parametrize(
    "charset", ["undefined", "idna", "punycode", "unicode_escape", "hex", "rot13", "mbcs", "-", "."]
)
@pytest.mark.parametrize("told", ["header", "meta"])
def test_the_name_of_a_codec_that_no_page_has_is_no_label(charset: str, told: str) -> None:
    body = f"<meta {'charset' if told == 'meta' else 'name'}={charset}><p>A story \\d".encode()
    assert text_or_reason(body, f"text/html; charset={charset}" if told == "header" else None) == "\nA story \\d\n"


@every_language
def test_the_text_is_the_same_however_its_charset_is_told(language: Language) -> None:
    page = f"<html><head><meta name=x content=y></head><body><p>{TEXTS[language]}</p></body></html>"
    page += " " * (len(page.encode()) % 2)  # of an even length, it could be UTF-16
    le, be, utf8 = page.encode("utf-16-le"), page.encode("utf-16-be"), page.encode()
    told: dict[str, tuple[bytes, str | None]] = {
        "no label": (utf8, None), "header": (utf8, 'text/html; charset="UTF-8"'), "header wins over meta": (
            page.replace("name=x", "charset=iso-8859-5").encode(), "text/html; charset=utf-8"),
        "unknown label": (utf8, "text/html; charset=klingon"), "a stray NUL": (utf8.replace(b"x", b"x\0", 1), None),
        "meta": (page.replace("name=x", "charset=utf-8").encode(), None),
        "meta http-equiv": (page.replace("content=y", "content='text/html; charset=UTF-8'").encode(), None),
        "utf-8 BOM": (codecs.BOM_UTF8 + utf8, None), "utf-16-le BOM": (codecs.BOM_UTF16_LE + le, None),
        "utf-8 BOM against the header": (codecs.BOM_UTF8 + utf8, "text/html; charset=utf-16"),
        "utf-16-be BOM": (codecs.BOM_UTF16_BE + be, None), "utf-16-le without a BOM": (le, None),
        "utf-16-le BOM against the header": (codecs.BOM_UTF16_LE + le, "text/html; charset=utf-8"),
        "utf-16-be without a BOM": (be, None), "utf-16-be by header": (be, "text/html; charset=utf-16be"),
        "utf-16 that says utf-8": (page.replace("name=x", "charset='utf-8'").encode("utf-16-le"), None),
    }  # fmt: skip
    for label in ("iso-8859-1", "windows-1252", "us-ascii", "iso-8859-15", "utf-16"):
        told[f"header lies: {label}"] = utf8, f"text/html; charset={label}"
        told[f"meta lies: {label}"] = page.replace("name=x", f"charset={label}").encode(), None
    for header in ("charset=a\0b", "charset=\ud800", "charset=", 'charset="', ";;;", "charset=é", "text/html; charset"):
        told[f"broken header: {header!r}"] = utf8, header
    want = tokens(TEXTS[language])
    assert {how for how, (body, header) in told.items() if tokens(text_or_reason(body, header)) != want} == set()


@pytest.mark.parametrize("language", [language for language in LANGUAGES if language is not ENGLISH])
def test_a_few_broken_bytes_cost_only_themselves(language: Language) -> None:
    page = f"<p>{TEXTS[language] * 9}</p><i>".encode()
    for broken in (page + b"\xff", page[:-3] + b"\xe0\xa4</i>", b"<b title='\xe9'>" + page):
        assert tokens(text_or_reason(broken)) == tokens(TEXTS[language] * 9), broken


@pytest.mark.parametrize("header", [None, "text/html; charset=utf-8", "text/html; charset=iso-8859-1", "charset=no"])
@pytest.mark.parametrize("meta", ["", "<meta charset=utf-8>", "<meta charset=iso-8859-1>"])
def test_bytes_of_windows_1252_are_read_as_such(header: str | None, meta: str) -> None:
    page = f"<html><head>{meta}</head><body><p>{WESTERN}</p></body></html>"
    assert text_or_reason(page.encode("cp1252"), header).strip() == WESTERN.strip()


def test_a_page_of_nothing_is_empty_and_one_without_a_match_has_no_body() -> None:
    for body in (b"", b" \r\n\t"):
        with pytest.raises(NoStoryText, match=Skip.EMPTY):
            decode(body, None)
    with pytest.raises(NoStoryText, match=Skip.NO_BODY):
        visible_text("<p>a</p>", Extraction(".story"))


@pytest.mark.parametrize("hidden", [
    "<script>var b = '<p>b</p>'</script>", "<style>b { }</style>", "<template><p>b</p></template>", "<!-- b -->",
    "<noscript>b</noscript>", "<p hidden>b</p>", "<p hidden=''><i>b</i></p>", "<p style='display:none'>b</p>",
    "<p STYLE='color:red; DISPLAY: none'>b</p>", "<p style='visibility:hidden'>b</p>", "<svg><text>b</svg>",
    "<select><option>b</select>", "<textarea>b</textarea>", "<button>b</button>", "<iframe>b</iframe>",
    "<div hidden><p hidden>b<script>b</script></p></div>",
    "<title>b</title>", "<datalist><option>b</datalist>", "<noembed>b</noembed>", "<noframes>b</noframes>",
    "<audio>b</audio>", "<video>b</video>", "<canvas>b</canvas>", "<rp>b</rp>",
])  # fmt: skip
@every_language
def test_what_a_reader_does_not_see_is_left_out(hidden: str, language: Language) -> None:
    first, second = two_words(language)
    assert words(f"<title>b</title><p>{first} {hidden} {second}</p>") == f"{first} {second}"


@pytest.mark.parametrize(
    ("root", "strip"), [("html hidden", "i"), ("html", "html"), ("html", "*"), ("body hidden", "i")]
)
def test_a_page_that_is_hidden_or_stripped_as_a_whole_has_no_words(root: str, strip: str) -> None:
    assert words(f"<{root}><body><p>a</p></body></html>", "", strip) == ""


@pytest.mark.parametrize("inline", ["b", "i", "em", "span", "a", "font", "mark", "u", "strong", "small"])
@every_language
def test_inline_markup_does_not_part_a_word(inline: str, language: Language) -> None:
    whole = max(tokens(TEXTS[language]), key=len).decode()
    assert words(f"<p><{inline}>{whole[:2]}</{inline}>{whole[2:4]}<wbr>{whole[4:]}</p>") == whole


@pytest.mark.parametrize("blocks", [
    "<p>{}</p><p>{}</p>", "{}<br>{}", "{}<br/>{}", "<div>{}</div>{}", "{}<div>{}</div>", "<ul><li>{}<li>{}</ul>",
    "<table><tr><td>{}<td>{}</table>", "<table><tr><th>{}<tr><td>{}</table>", "<h1>{}</h1>{}", "<dl><dt>{}<dd>{}</dl>",
    "<table><tr><td><table><tr><td>{}</table></td><td>{}</table>", "<section>{}</section><section>{}</section>",
    "{}<hr>{}", "<blockquote>{}</blockquote>{}", "<pre>{}\n{}</pre>", "<article>{}<p>{}</article>", "{}<!-- -->\n{}",
    "<p>{} <b>{}", "<p>{}</b></i></p>{}", "{}<p <p>{}", "<div><p>{}</div>{}</p></div>", "</td>{}</p>{}", "<p>{}<p/>{}<",
    "<hgroup>{}</hgroup>{}", "<search>{}</search>{}", "{}<dir>{}</dir>", "<p>{}<listing>{}", "<p>{}<xmp>{}</xmp>",
])  # fmt: skip
@every_language
def test_blocks_part_words_in_good_markup_and_bad(blocks: str, language: Language) -> None:
    assert words(blocks.format(*two_words(language))) == " ".join(two_words(language))


@every_language
def test_character_references_are_their_characters(language: Language) -> None:
    text = TEXTS[language]
    for form in ("&#{};", "&#x{:x};", "&#X{:04X};"):
        assert visible_text("".join(form.format(ord(c)) for c in text), WHOLE) == text, form
    assert visible_text("&lt;p&gt; &amp;amp; &eacute;&nbsp;&zwj;&shy;", WHOLE) == "<p> &amp; é\u00a0\u200d\u00ad"


@pytest.mark.parametrize(("body", "found"), [
    (".a", "x y z"), (".a, .b", "x y z w"), (".b, .a", "x y z w"), (".a .a", "y"), ("p", "w"), ("div, b", "x y z"),
    ("main > .b", "w"), ("", "x y z w v"),
])  # fmt: skip
def test_the_outermost_matches_count_once(body: str, found: str) -> None:
    assert (
        words("<main><div class=a>x<div class=a><b class=a>y</b></div>z</div><p class=b>w</p></main>v", body) == found
    )


def test_what_is_stripped_is_gone_and_a_block_still_parts_words() -> None:
    assert words("<div id=s>a<i class=n>c</i>b<b>n</b></div>", "#s", ".n", "b") == "ab"
    assert words("<div id=s>a<p class=share>s</p>b</div>", "#s", ".share") == "a b"


@pytest.mark.parametrize("selector", ["p[", "::::", "..", ">>"])
def test_a_selector_that_does_not_parse_is_refused(selector: str) -> None:
    for body, strip in ((selector, ()), ("", ("p", selector))):
        with pytest.raises(ValueError, match="not a CSS selector"):
            Extraction(body, strip)


@pytest.mark.parametrize("language", SAMPLED)
def test_a_sample_page_holds_its_story_and_nothing_else(language: Language) -> None:
    page = next((SAMPLES / "stories" / language).glob("*.html"))
    text = page_text(page.read_bytes(), "text/html", STORY)
    letters = [c for c in text if unicodedata.category(c).startswith("L")]
    script = "LATIN" if language is ENGLISH else unicodedata.name(TEXTS[language][0]).split()[0]
    assert sum(unicodedata.name(c).startswith(script) for c in letters) > 0.99 * len(letters)
