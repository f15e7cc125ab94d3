"""Laws: any bytes and any markup give text or NoStoryText, and nothing else; a page's words are those a reader sees,
whatever its charset, and whether the charset is declared, missing or declared wrongly.  A page's title is that of the
head, else the first heading, in any encoding, on one line.
"""

import codecs
import re
import unicodedata
from time import perf_counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from neardup.core.languages import LANGUAGES
from neardup.core.text import html as title_module
from neardup.core.text.decoding import NoStoryText, decode
from neardup.core.text.extraction import Extraction
from neardup.core.text.html import (
    MOST_TITLE_CHARACTERS,
    OPENING_WORDS,
    cut_opening,
    extract_markup,
    extract_page_text,
    extract_visible_text,
    find_title,
)
from neardup.core.text.normalize import tokenize
from neardup.records import RENDERINGS, Language, Skip

from tests.support.languages import ENGLISH, SAMPLED, TEXTS
from tests.support.paths import SAMPLES
from tests.support.sampling import crossed

WHOLE = Extraction()
STORY = Extraction("article .story, div.post-body", (".share", ".author-note"))
TAGS = ["html", "head", "body", "title", "script", "style", "template", "noscript", "svg", "math", "iframe", "select"]
TAGS += ["option", "table", "tr", "td", "a", "b", "p", "div", "br", "li", "h1", "pre", "textarea", "form", "plaintext"]
ATTRIBUTES = ["", " hidden", " class=story", " style='display:none'", " class='share", "/"]
TEXT = ["हिन्दी", "മലയാളം", "x", " ", "&amp;", "&#0;", "&#xd800;", "&nosuch;", "<", "<!--", "-->", "\0", "\ud800"]
opening = st.tuples(st.sampled_from(TAGS), st.sampled_from(ATTRIBUTES)).map(lambda made: f"<{made[0]}{made[1]}>")
soup = st.lists(st.one_of(opening, st.sampled_from(TAGS).map("</{}>".format), st.sampled_from(TEXT)), max_size=40)
LABELS = ["utf-8", "utf-16", "utf-16be", "utf-7", "gb18030", "iso-2022-jp", "hz-gb-2312", "big5", "x-user-defined"]
INLINE = ["b", "i", "em", "span", "a", "font", "mark", "u", "strong", "small"]
every_language = pytest.mark.parametrize("language", LANGUAGES)
unhurried = settings(deadline=None)
WESTERN = "“Zoë’s café,” he said – “déjà vu.” " * 20


def words(html: str, body: str = "", *strip: str) -> str:
    return b" ".join(tokenize(extract_visible_text(html, Extraction(body, strip)))).decode()


def two_words(language: Language) -> list[str]:
    return b" ".join(tokenize(TEXTS[language])[:2]).decode().split()


def text_or_reason(body: bytes, content_type: str | None = None) -> str:
    try:
        return extract_page_text(body, content_type, WHOLE)
    except NoStoryText as error:
        return error.reason


@unhurried
@given(st.binary(), st.none() | st.sampled_from(LABELS).map("text/html; charset={}".format) | st.text())
def test_any_bytes_give_text_or_a_reason(body: bytes, content_type: str | None) -> None:
    text_or_reason(body, content_type).encode()


@unhurried
@given(soup.map("".join), st.sampled_from([WHOLE, STORY, Extraction("p", ("p",)), Extraction("", ("body", "div, b"))]))
def test_any_markup_is_text_or_has_no_body(html: str, extraction: Extraction) -> None:
    reason: Skip | None = None
    try:
        found = extract_markup(html, extraction)
        found.text.encode()
        assert found.rendered is None or found.rendered in RENDERINGS, "a reason without a series of its own"
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
@pytest.mark.parametrize("source", ["header", "meta"])
def test_names_of_python_codecs_are_not_charset_labels(charset: str, source: str) -> None:
    body = f"<meta {'charset' if source == 'meta' else 'name'}={charset}><p>A story \\d".encode()
    assert text_or_reason(body, f"text/html; charset={charset}" if source == "header" else None) == "\nA story \\d\n"


@every_language
def test_the_text_is_the_same_however_its_charset_is_declared(language: Language) -> None:
    page = f"<html><head><meta name=x content=y></head><body><p>{TEXTS[language]}</p></body></html>"
    page += " " * (len(page.encode()) % 2)  # an even length, which UTF-16 could have
    le, be, utf8 = page.encode("utf-16-le"), page.encode("utf-16-be"), page.encode()
    pages: dict[str, tuple[bytes, str | None]] = {
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
        "utf-16 declared as utf-8": (page.replace("name=x", "charset='utf-8'").encode("utf-16-le"), None),
    }  # fmt: skip
    for label in ("iso-8859-1", "windows-1252", "us-ascii", "iso-8859-15", "utf-16"):
        pages[f"header is wrong: {label}"] = utf8, f"text/html; charset={label}"
        pages[f"meta is wrong: {label}"] = page.replace("name=x", f"charset={label}").encode(), None
    for header in ("charset=a\0b", "charset=\ud800", "charset=", 'charset="', ";;;", "charset=é", "text/html; charset"):
        pages[f"broken header: {header!r}"] = utf8, header
    expected = tokenize(TEXTS[language])
    assert {
        case for case, (body, header) in pages.items() if tokenize(text_or_reason(body, header)) != expected
    } == set()


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_utf_16_has_a_tenth_of_its_nuls_at_the_other_bytes_at_most(encoding: str) -> None:
    """The one of `Ā` stands where the letters of ASCII have none."""
    for wide, is_known in ((0, True), (1, True), (2, False)):
        text = f"abcdefghij{'Ā' * wide}"
        assert (decode(text.encode(encoding), None) == text) is is_known, f"{wide} of 10"


@pytest.mark.parametrize("header", ["text/html; charset=utf-16le", "text/html;charset='UTF-16'", "charset=unicode"])
@pytest.mark.parametrize(
    "markup", ["{}", "<p>{}", "<p>{}</p>\u2f3c\u0970"], ids=["text", "a tag", "the bytes of a tag"]
)
def test_a_header_names_utf_16_whose_bytes_are_those_of_ascii(header: str, markup: str) -> None:
    """Letters from U+0900 on between spaces of U+2003 are bytes of ASCII, with too few NULs to be known by them."""
    text = "\u2003".join(["कमल घर नदी".replace(" ", "\u2003")] * 40)
    page = markup.format(text).encode("utf-16-le")
    assert tokenize(text_or_reason(page, header))[:120] == tokenize(text)


def test_escapes_of_iso_2022_jp_between_letters_show_nothing() -> None:
    text = TEXTS[ENGLISH].encode("ascii", "ignore")
    page = b"<meta charset=iso-2022-jp><p>" + text.replace(b"e", b"e\x1b(B")
    assert tokenize(text_or_reason(page)) == tokenize(text.decode())


@pytest.mark.parametrize("language", [language for language in LANGUAGES if language is not ENGLISH])
def test_a_few_broken_bytes_change_no_word(language: Language) -> None:
    page = f"<p>{TEXTS[language] * 9}</p><i>".encode()
    for broken in (page + b"\xff", page[:-3] + b"\xe0\xa4</i>", b"<b title='\xe9'>" + page):
        assert tokenize(text_or_reason(broken)) == tokenize(TEXTS[language] * 9), broken


def test_replacement_characters_in_utf8_are_no_broken_bytes() -> None:
    text = "She didn\ufffdt know at all, in those long years, what her mother had meant by coming home."
    assert text_or_reason(f"<meta charset=iso-8859-1><p>{text}</p>".encode()).strip() == text


@pytest.mark.parametrize("header", [None, "text/html; charset=utf-8", "text/html; charset=iso-8859-1", "charset=no"])
@pytest.mark.parametrize("meta", ["", "<meta charset=utf-8>", "<meta charset=iso-8859-1>"])
def test_windows_1252_is_decoded_whatever_its_label(header: str | None, meta: str) -> None:
    page = f"<html><head>{meta}</head><body><p>{WESTERN}</p></body></html>"
    assert text_or_reason(page.encode("cp1252"), header).strip() == WESTERN.strip()


def test_a_blank_page_is_empty_and_without_a_match_no_body() -> None:
    for body in (b"", b" \r\n\t"):
        with pytest.raises(NoStoryText, match=Skip.EMPTY):
            decode(body, None)
    with pytest.raises(NoStoryText, match=Skip.NO_BODY):
        extract_visible_text("<p>a</p>", Extraction(".story"))


HIDDEN = [
    "<script>var b = '<p>b</p>'</script>", "<style>b { }</style>", "<template><p>b</p></template>", "<!-- b -->",
    "<noscript>b</noscript>", "<select><option>b</select>", "<iframe>b</iframe>", "<title>b</title>",
    "<datalist><option>b</datalist>", "<noembed>b</noembed>", "<noframes>b</noframes>", "<audio>b</audio>",
    "<video>b</video>", "<canvas>b</canvas>", "<ruby><rp>b</rp><rt>b</rt></ruby>", "<svg><title>b</title></svg>",
    "<p hidden>b</p>", "<p hidden=''><i>b</i></p>", "<div hidden><p hidden>b<script>b</script></p></div>",
    "<p hidden=until-found>b</p>", "<div popover>b</div>", "<dialog>b</dialog>", "<sup>1</sup>", "<sup>[b]</sup>",
    *(f"<p style='{style}'><i>b</i></p>" for style in (
        "display:none", "color:red; DISPLAY: none", "display:\tnone", "display:/**/none", "d\\69splay:none",
        "display:block;display:none", "display:none;display:no", "display:none!important;display:block",
        "--a:none;display:var(--a)", "--a:none;display:VAR(--a)", "--a:initial;display:var(--a,none)",
        "--a:Unset;display:var(--a,none)", "display:var(--a,none)", "--a:var(--b);--b:none;display:var(--a)",
        "visibility:hidden", "visibility: Hidden", "visibility:collapse", "font-size:0", "font:0/0 a", "font-size:.5px",
        "opacity:0", "opacity:0%", "opacity:.01", "filter:opacity(0)", "color:transparent", "color:rgba(9,9,9,0)",
        "color:#fff0", "color:white", "color:#fefefe", "background:#000", "background:red;color:#f00",
        "-webkit-text-fill-color:transparent", "position:absolute;left:-9999px",
        "position:fixed;inset:-999vh auto auto 0",
        "position:absolute;top:-300em", "text-indent:-9999px", "margin-left:-9999px", "transform:translateX(-9999px)",
        "transform:scale(0)", "scale:0", "translate:-9999px", "height:0;overflow:hidden", "max-width:0;overflow:clip",
        "width:1px;height:1px;overflow:hidden", "position:absolute;clip:rect(0 0 0 0)", "clip-path:inset(50%)",
        "clip-path:circle(0)", "clip-path:polygon(0 0, 0 0)", "content-visibility:hidden",
    )),
    "<link rel='next StyleSheet' href='DATA:Text/CSS;charset=utf-8,em{display:none}'><em>b</em>",
    *(f"<style>{sheet}</style><p class=h><i>b</i></p>" for sheet in (
        ".h{display:none}", "p.h{color:red}.h{visibility:hidden}", "@media screen{.h{display:none}}",
        "@media(min-width:1px){.h{display:none}}", "[class]{display:none}", ".x,.h{display:none}",
        ":is(.h){display:none}", "p{&.h{display:none}}", "@supports(color:red){.h{display:none}}",
        "@layer a{.h{opacity:0}}",
        ".h{display:none!important}p.h{display:block}", ":root{--a:none}.h{display:var(--a)}",
        ".h, p::backdrop, ::-webkit-scrollbar:hover, ::part(a){display:none}",
        'b[title="("], .h{display:none}', ".a\\(, .h{display:none}", "b[title=','], .h{display:none}",
        ".h *{display:none}",
    )),
]  # fmt: skip


def test_hidden_text_is_left_out() -> None:
    for hidden, language in crossed(HIDDEN, LANGUAGES):
        first, second = two_words(language)
        read = words(f"<title>b</title><p>{first}</p>{hidden} <p>{second}</p>")
        assert read == f"{first} {second}", f"in {language}: {hidden}"


SHOWN = [
    "<button>{}</button>", "<textarea>{}</textarea>", "<object>{}</object>", "<svg><text>{}</text></svg>",
    "<iframe srcdoc='<p>{}</p>'></iframe>", "<div><template shadowrootmode=open><p>{}</p></template></div>",
    "<details><summary></summary>{}</details>", "<dialog open>{}</dialog>", "<ruby>{}<rt>b</rt></ruby>",
    "<rp style='display:block'>{}</rp>", "<style>rp{{display:block}}</style><p><rp>{}</rp></p>",
    "<div><template shadowrootmode=open><b><slot></slot></b></template>{}</div>",
    "<center><template shadowrootmode=open>b</template>{}</center>",
    "<svg><x-a><template shadowrootmode=open></template></x-a><text>{}</text></svg>",
    "<font-face><template shadowrootmode=open>b</template>{}</font-face>",
    "<x-a><template shadowrootmode=Closed>{}</template>b</x-a>",
    "<div><template shadowrootmode=bogus>b</template>{}</div>",
    "<div><template shadowrootmode>b</template><template shadowrootmode=open>{}</template>b</div>",
    "<p hidden style=display:block>{}</p>", "<p style='--a:none;display:var(--b,VAR(--c,block))'>{}</p>",
    "<div style='--a:none'><p style='--a:initial'><b style='display:var(--a,block)'>{}</b></p></div>",
    "<div style='--a:none'><p style='--a:block;--a:inherit'><i style='display:var(--a)'>b</i></p>{}</div>",
    "<p style='visibility:hidden'>b<i style='visibility:visible'>{}</i></p>",
    "<p style='display:none;display:block'>{}",
    "<p style='font-size:0'>b<i style='font-size:1rem'>{}</i></p>", "<p style='content:\"display:none\"'>{}</p>",
    "<p title='display:none'>{}</p>", "<p style='--display:none'>{}</p>", "<p style='display:none2'>{}</p>",
    "<p style='color:transparent'><i style='color:red'>{}</i></p>", "<p style='background:#000;color:#fff'>{}</p>",
    "<p style='text-indent:-9999px'><i style='text-indent:0'>{}</i></p>", "<p style='left:-9999px'>{}</p>",
    "<p style='height:0'>{}</p>", "<p style='display:none' class=s>b</p><p>{}</p>", "<p style='opacity:.5'>{}</p>",
    *(f"<style>{selectors}{{{{display:none}}}}</style><p class=s>{{}}</p>" for selectors in (
        ".s, 5", ".s, 5::backdrop", ".s, p:5", ".s, :not(5)", ".s,", ", .s", "",
    )),
    *(f"<link {link},p{{{{display:none}}}}'><p>{{}}</p>" for link in (
        "href='data:text/css", "rel=icon href='data:text/css", "rel=stylesheet href='data:text/plain",
        "rel=stylesheet href='data:", "rel='alternate stylesheet' title=a href='data:text/css",
        "rel=stylesheet disabled href='data:text/css",
    )),
    "<table style='display:table;height:0;overflow:hidden'><td>{}</table>",
    "<div style='display:flex'><p style='flex:1;width:0;overflow:hidden'>{}</p></div>",
    "<div style='text-indent:-9999px'><table><td>{}</table></div>", "<b style='content-visibility:hidden'>{}</b>",
    "<p style='position:absolute;left:100%;transform:translateX(-100%)'>{}</p>",
    "<p style='margin-left:100%;transform:translateX(-100%)'>{}</p>",
    "<p style='opacity:abs(1)'>{}</p>", f"<p style='opacity:calc({'.01 + ' * 40}.6)'>{{}}</p>",
    "<style>.s{{display:none!important}}p{{display:none}}#s{{display:block}}</style><p id=s>{}</p>",
    "<style>@media print{{p{{display:none}}}}</style><p>{}</p>",
    "<style media=print>p{{display:none}}</style><p>{}</p>",
    "<style>p{{display:none}}</style><p style='display:block'>{}</p>",
    "<style>p:hover{{display:none}}</style><p>{}</p>",
    "<style>b::before{{content:attr(title)}}</style><b title='{}'></b>",
    "<style>b::after{{content:'{}'}}</style><b></b>",
    "<style>/*p{{display:none}}*/</style><p>{}</p>",
    "<style>@media(max-width:9px){{p{{display:none}}}}</style><p>{}</p>",
]  # fmt: skip


def test_text_that_browsers_show_counts() -> None:
    for page, language in crossed(SHOWN, LANGUAGES):
        first, second = two_words(language)
        assert words(page.format(f"{first} {second}")) == f"{first} {second}", f"in {language}: {page}"


WITHIN = [
    "<br hidden>", "<hr hidden>", "<div hidden></div>", "<div style='display:none'>b</div>",
    "<hr style='display:none'>",
    "<br style='display:none'>", "<div style='display:contents'></div>", "<span style='display:inline-block'></span>",
    "<div style='display:inline'></div>", "<i style='font-size:0'> </i>", "<i style='font-size:0'> b </i>", "<wbr>",
    "<i style='display:inline-block'> <!-- --> </i>", "<i style='position:absolute;left:-9999px'> b </i>",
    "&ZeroWidthSpace;",
    "<style>.n{display:none}</style><div class=n></div>", "<dialog>b</dialog>", "<i style='visibility:hidden'> b </i>",
]  # fmt: skip


def test_what_is_not_shown_does_not_break_a_word() -> None:
    for within, language in crossed(WITHIN, LANGUAGES):
        whole = max(tokenize(TEXTS[language]), key=len).decode()
        assert words(f"<section>{whole[:2]}{within}{whole[2:]}</section>") == whole, f"in {language}: {within}"


@pytest.mark.parametrize(
    ("root", "strip"), [("html hidden", "i"), ("html", "html"), ("html", "*"), ("body hidden", "i")]
)
def test_a_page_hidden_or_stripped_entirely_has_no_words(root: str, strip: str) -> None:
    assert words(f"<{root}><body><p>a</p></body></html>", "", strip) == ""


def test_inline_markup_does_not_split_a_word() -> None:
    for inline, language in crossed(INLINE, LANGUAGES):
        whole = max(tokenize(TEXTS[language]), key=len).decode()
        read = words(f"<p><{inline}>{whole[:2]}</{inline}>{whole[2:4]}<wbr>{whole[4:]}</p>")
        assert read == whole, f"in {language}: {inline}"


BLOCKS = [
    "<p>{}</p><p>{}</p>", "{}<br>{}", "{}<br/>{}", "<div>{}</div>{}", "{}<div>{}</div>", "<ul><li>{}<li>{}</ul>",
    "<table><tr><td>{}<td>{}</table>", "<table><tr><th>{}<tr><td>{}</table>", "<h1>{}</h1>{}", "<dl><dt>{}<dd>{}</dl>",
    "<table><tr><td><table><tr><td>{}</table></td><td>{}</table>", "<section>{}</section><section>{}</section>",
    "{}<hr>{}", "<blockquote>{}</blockquote>{}", "<pre>{}\n{}</pre>", "<article>{}<p>{}</article>", "{}<!-- -->\n{}",
    "<p>{} <b>{}", "<p>{}</b></i></p>{}", "{}<p <p>{}", "<div><p>{}</div>{}</p></div>", "</td>{}</p>{}", "<p>{}<p/>{}<",
    "<p style='display:flex;flex-flow:row wrap-reverse'><b>{}</b><b>{}</b>", "<hgroup>{}</hgroup>{}",
    "<search>{}</search>{}", "{}<dir>{}</dir>", "<p>{}<listing>{}", "<p>{}<xmp>{}</xmp>",
]  # fmt: skip


def test_blocks_separate_words_in_valid_and_invalid_markup() -> None:
    for blocks, language in crossed(BLOCKS, LANGUAGES):
        assert words(blocks.format(*two_words(language))) == " ".join(two_words(language)), f"in {language}: {blocks}"


@every_language
def test_character_references_become_their_characters(language: Language) -> None:
    text = TEXTS[language]
    for form in ("&#{};", "&#x{:x};", "&#X{:04X};"):
        assert extract_visible_text("".join(form.format(ord(c)) for c in text), WHOLE) == text, form
    assert (
        extract_visible_text("&lt;p&gt; &amp;amp; &eacute;&nbsp;&zwj;&shy;", WHOLE) == "<p> &amp; é\u00a0\u200d\u00ad"
    )


@pytest.mark.parametrize(("body", "found"), [
    (".a", "x y z"), (".a, .b", "x y z w"), (".b, .a", "x y z w"), (".a .a", "y"), ("p", "w"), ("div, b", "x y z"),
    ("main > .b", "w"), ("", "x y z w v"),
])  # fmt: skip
def test_the_outermost_matches_count_once(body: str, found: str) -> None:
    assert (
        words("<main><div class=a>x<div class=a><b class=a>y</b></div>z</div><p class=b>w</p></main>v", body) == found
    )


def test_stripped_parts_are_gone_and_blocks_still_separate_words() -> None:
    assert words("<div id=s>a<i class=n>c</i>b<b>n</b></div>", "#s", ".n", "b") == "ab"
    assert words("<div id=s>a<p class=share>s</p>b</div>", "#s", ".share") == "a b"


@pytest.mark.parametrize("selector", ["p[", "::::", "..", ">>"])
def test_a_selector_that_does_not_parse_is_refused(selector: str) -> None:
    for body, strip in ((selector, ()), ("", ("p", selector))):
        with pytest.raises(ValueError, match="not a CSS selector"):
            Extraction(body, strip)


@pytest.mark.parametrize("language", SAMPLED)
def test_text_of_a_sample_page_is_its_story_only(language: Language) -> None:
    page = next((SAMPLES / "stories" / language).glob("*.html"))
    text = extract_page_text(page.read_bytes(), "text/html", STORY)
    letters = [c for c in text if unicodedata.category(c).startswith("L")]
    script = "LATIN" if language is ENGLISH else unicodedata.name(TEXTS[language][0]).split()[0]
    assert sum(unicodedata.name(c).startswith(script) for c in letters) > 0.99 * len(letters)


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


PARTS = st.sampled_from((
    "<!doctype html>", "<html lang=hi>", "<html>", "<head>", '<meta charset="utf-8">', "<meta name=a content='b c'/>",
    "<link href=/a?b=c rel=icon>", '<meta a="b>c">', '<meta a=b" c="d>', "<meta a=b'>", "<meta/a=b>", "<Link A />",
    "<style>s</style>", "<title>", "</title>", "<TITLE>", "कहानी ", "a", "&amp;", "<!-- c -->", "<b>", "\n", "\x0b",
    "\x0c", "\r", "\u2028", "\x01", "\ufffd", "<p>", "<script>", "</head>", "<body>", "<h1>h</h1>",
))  # fmt: skip


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
