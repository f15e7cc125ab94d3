"""Disguises of a copied story: pages that look to a reader like the story, and to a careless program like another text.

Each makes a page of a story's text.  `languages` are those that it applies to; `label` is the language that the copy is
listed under, if not its own.
"""

import html
import re
import unicodedata
from collections.abc import Callable, Mapping
from functools import partial
from itertools import cycle
from random import Random

import regex
from msgspec import Struct
from neardup.records import Language

from tests.support.languages import BENGALI, ENGLISH, GUJARATI, HINDI, MARATHI, ODIA, PUNJABI, SAMPLED, TELUGU
from tests.support.sample_texts import STORIES, transliterated

INDIC = tuple(language for language in SAMPLED if language != ENGLISH)
LATIN = (ENGLISH,)


class Disguise(Struct, frozen=True):
    """One way to hide a copy; `page` makes the markup of the text of a story in a language."""

    family: str
    name: str
    page: Callable[[str, Language], str]
    languages: tuple[Language, ...] = SAMPLED
    label: Language | None = None


def of_text(changed: Callable[[str], str]) -> Callable[[str, Language], str]:
    """A page of the changed text."""
    return lambda text, _: paragraphs(html.escape(changed(text)))


def of_words(shown: Callable[[str, str], str], style: str = "", between: str = " ") -> Callable[[str, Language], str]:
    """A page of the words, each shown as markup, beside a word of another story, or none."""

    def page(text: str, language: Language) -> str:
        words = cycle(junk_of(language))
        lines = [
            between.join(shown(html.escape(word), next(words) if n % 2 else "") for n, word in enumerate(line.split()))
            for line in lines_of(text)
        ]
        return f"<style>{style}</style>" + "".join(f"<p>{line}</p>" for line in lines)

    return page


def of_markup(markup: str, style: str = "") -> Callable[[str, Language], str]:
    """A page of this markup around each line, with the line in place of STORY, and junk in place of JUNK."""

    def page(text: str, language: Language) -> str:
        junk = " ".join(junk_of(language)[:40])
        lines = [markup.replace("JUNK", junk).replace("STORY", html.escape(line)) for line in lines_of(text)]
        return f"<style>{style}</style>" + "".join(lines)

    return page


def junk_of(language: Language) -> list[str]:
    """The words of another story."""
    return html.escape(STORIES[language][-1]).split()


def lines_of(text: str) -> list[str]:
    return [line for line in text.split("\n") if line.strip()]


def paragraphs(text: str) -> str:
    return "".join(f"<p>{line}</p>" for line in lines_of(text))


def hidden_junk(attributes: str, style: str = "", tag: str = "span") -> Callable[[str, Language], str]:
    """A page with a junk word that is not shown after each second word."""
    return of_words(lambda word, junk: f"{word} <{tag} {attributes}>{junk}</{tag}>" if junk else word, style)


def within_words(markup: str, style: str = "") -> Callable[[str, Language], str]:
    """A page with this markup in the middle of each word."""

    def shown(word: str) -> str:
        middle = _middle(word)
        return word[:middle] + markup + word[middle:]

    return of_words(lambda word, _: word if "&" in word else shown(word), style)


def _middle(word: str) -> int:
    """The place near the middle of a word at which no mark stands."""
    places = [n for n in range(1, len(word)) if word[n].isalpha() and unicodedata.combining(word[n - 1]) != 9]
    return min(places, key=lambda n: abs(n - len(word) / 2), default=len(word))


def after_letters(sign: str) -> Callable[[str, Language], str]:
    return of_text(lambda text: re.sub(r"(\S)(?=\S)", lambda match: match[1] + sign, text.replace("\u200d", "")))


def _between(sign: str, size: int) -> Callable[[str, Language], str]:
    """A sign after so many characters within words."""
    return of_text(lambda text: re.sub(rf"(\S{{{size}}})(?=\S)", lambda match: match[1] + sign, text))


def translated(table: Mapping[int, int | str]) -> Callable[[str, Language], str]:
    return of_text(lambda text: text.translate(table))


def _block(capital: int, small: int) -> dict[int, str]:
    return {0x41 + n: chr(capital + n) for n in range(26)} | {0x61 + n: chr(small + n) for n in range(26)}


def _split_words(text: str, every: int) -> str:
    return " ".join(
        word[: _middle(word)] + " " + word[_middle(word) :] if n % every == 0 else word
        for n, word in enumerate(text.split())
    )


def _joined_words(text: str) -> str:
    return re.sub(r"(\S+)[^\S\n]+(\S+)", r"\1\2", text)


def _fifth_replaced(text: str, language: Language) -> str:
    chance, junk = Random(5), cycle(junk_of(language))
    lines = (
        " ".join(next(junk) if chance.random() < 0.2 else html.escape(word) for word in line.split())
        for line in lines_of(text)
    )
    return paragraphs("\n".join(lines))


def reversed_lines(text: str) -> list[str]:
    """The lines with their letters, and the marks on them, in reverse."""
    return ["".join(reversed(regex.findall(r"\P{M}[\p{M}\u200c\u200d]*", line))) for line in lines_of(text)]


def _native_digits(text: str, language: Language) -> str:
    zero = {HINDI: 0x966, MARATHI: 0x966, BENGALI: 0x9E6, GUJARATI: 0xAE6}[language]
    return paragraphs(html.escape(text.translate({0x30 + n: chr(zero + n) for n in range(10)})))


def _in_script(target: Language, text: str, language: Language) -> str:
    other = GUJARATI if language == target else target
    return paragraphs(html.escape(transliterated(text, language, other)))


visibility, letters, spaces, order, scripts, labels = (
    partial(Disguise, family) for family in ("hidden text", "letters", "spaces", "order", "script", "label")
)

CYRILLIC = str.maketrans("aceopxyiABCEHKMOPTX", "асеорхуіАВСЕНКМОРТХ")
GREEK = str.maketrans("ovAEZIKMNOTXY", "ονΑΕΖΙΚΜΝΟΤΧΥ")
LOWER_GREEK = str.maketrans("aeinoptuvx", "αειηορτυνχ")
STROKES = str.maketrans("bdfghiklmnoptz", "ƀđƒɠħɨƙłɱɲøƥŧƶ")
SYLLABICS = str.maketrans("BDJLPUVTX", "ᗷᗪᒍᒪᑭᑌᐯᎢᕽ")
OLD_ITALIC = str.maketrans("ABCEIMTX", "𐌀𐌁𐌂𐌄𐌉𐌌𐌕𐌗")
COPTIC = str.maketrans("ABCEHIKMNOPTX", "ⲀⲂⲤⲈⲎⲒⲔⲘⲚⲞⲢⲦⲬ")
SMALL_CAPITALS = str.maketrans("abcdeghjkmnoprtuvwz", "ᴀʙᴄᴅᴇɢʜᴊᴋᴍɴᴏᴘʀᴛᴜᴠᴡᴢ")
TWO_SIGNS = str.maketrans({"आ": "अा", "ओ": "अो", "औ": "अौ", "ऐ": "एे", "আ": "অা", "આ": "અા", "ଆ": "ଅା", "ਆ": "ਅਾ"})

DISGUISES = (
    visibility("display: none", hidden_junk('style="display:none"')),
    visibility("DISPLAY with comment, !important", hidden_junk('style="DIS/**/PLAY: block; display:none!important"')),
    visibility("a rule of a class", hidden_junk('class="x"', ".x{display:none}")),
    visibility("a nested rule with :not()", hidden_junk('class="x"', "p{ span:not(.y){display:none} }")),
    visibility("a custom property", hidden_junk('style="display:var(--d)"', ":root{--d:none}")),
    visibility("the attribute hidden", hidden_junk("hidden")),
    visibility("visibility: hidden", hidden_junk('style="visibility:hidden"')),
    visibility("font-size: 0", hidden_junk('style="font-size:0"')),
    visibility("font-size: calc()", hidden_junk('style="font-size:calc(1px - 1px)"')),
    visibility("opacity: 0", hidden_junk('style="opacity:0.0%"')),
    visibility("a transparent colour", hidden_junk('style="color:rgb(0 0 0 / 0)"')),
    visibility("the colour of the background", hidden_junk('style="color:#fefefe;background:white"')),
    visibility("outside the screen", hidden_junk('style="position:absolute;left:-9999px"')),
    visibility("clip-path", hidden_junk('style="position:absolute;clip-path:inset(100%)"')),
    visibility("a box of no size", hidden_junk('style="display:inline-block;width:0;height:0;overflow:hidden"')),
    visibility("a line of no height", of_markup('<div style="line-height:0;overflow:hidden">JUNK</div><p>STORY</p>')),
    visibility("transform: scale(0)", hidden_junk('style="display:inline-block;position:absolute;transform:scale(0)"')),
    visibility("zoom", hidden_junk('style="zoom:.01"')),
    visibility("a colour of another space", hidden_junk('style="color:oklch(1 0 0)"')),
    visibility("contain: strict", hidden_junk('style="display:inline-block;width:0;height:0;contain:strict"')),
    visibility("template and noscript", hidden_junk("", tag="template")),
    visibility("ruby annotations", of_words(lambda word, junk: f"<ruby>{word}<rt>{junk}</rt></ruby>")),
    visibility("alternative texts", of_words(lambda word, junk: f'{word} <img src="a.png" alt="{junk}" title="{junk}">')),
    visibility("hidden letters in words", within_words('<span style="display:none">qz</span>')),
    visibility("hidden breaks in words", within_words("<br hidden><hr hidden>")),
    visibility("empty elements in words", within_words("<span></span><wbr><!-- -->")),
    visibility("none, then block", of_markup('<p style="display:none;display:block">STORY</p>')),
    visibility("a visible child of a hidden one", of_markup('<div style="visibility:hidden">JUNK<p style="visibility:visible">STORY</p></div>')),
    visibility("a rule that never holds", of_markup("<p class=x>STORY</p>", "@media print{.x{display:none}}")),
    visibility("hidden, but shown by style", of_markup('<p hidden style="display:block">STORY</p>')),
    visibility("button", of_markup("<button>STORY</button>")),
    visibility("textarea", of_markup("<textarea>STORY</textarea>")),
    visibility("text of svg", of_markup("<svg><text>STORY</text></svg>")),
    visibility("iframe srcdoc", of_markup('<iframe srcdoc="<p>STORY</p>"></iframe>')),
    visibility("shadow DOM", of_markup('<div><template shadowrootmode="open"><p>STORY</p></template></div>')),
    visibility("details", of_markup("<details open><summary>1</summary>STORY</details>")),
    visibility("content of ::before", of_markup('<p data-t="STORY"></p>', "p::before{content:attr(data-t)}")),
    letters("zero-width space", after_letters("\u200b")),
    letters("joiners", after_letters("\u200c\u200d\u2060")),
    letters("soft hyphens", after_letters("\xad")),
    letters("left-to-right marks", after_letters("\u200e")),
    letters("variation selectors and tags", after_letters("\ufe0e\U000e0061")),
    letters("control characters", after_letters("\x01")),
    letters("noncharacters and annotation marks", after_letters("\ufdd0\ufff9")),
    letters("invisible operators", after_letters("\u2061\u3164")),
    letters("a stroke through each letter", after_letters("\u0336")),
    letters("decomposed", of_text(lambda text: unicodedata.normalize("NFD", text))),
    letters("character references", lambda text, _: paragraphs("".join(f"&#{ord(c)};" if c != "\n" else c for c in text))),
    letters("capitals", of_text(str.upper), LATIN),
    letters("Cyrillic look-alikes", translated(CYRILLIC), LATIN),
    letters("Greek look-alikes", translated(GREEK), LATIN),
    letters("small Greek letters", translated(LOWER_GREEK), LATIN),
    letters("letters with strokes and hooks", translated(STROKES), LATIN),
    letters("capitals of syllabics", of_text(lambda text: text.upper().translate(SYLLABICS)), LATIN),
    letters("capitals of Old Italic", of_text(lambda text: text.upper().translate(OLD_ITALIC)), LATIN),
    letters("capitals of Coptic", of_text(lambda text: text.upper().translate(COPTIC)), LATIN),
    letters("fullwidth letters", translated(_block(0xFF21, 0xFF41)), LATIN),
    letters("mathematical letters", translated(_block(0x1D400, 0x1D41A)), LATIN),
    letters("small capitals", translated(SMALL_CAPITALS), LATIN),
    letters("0 for o, 1 for l", translated(str.maketrans("ol", "01")), LATIN),
    letters("3 for e, 4 for a", translated(str.maketrans("ea", "34")), LATIN),
    letters("5 for s, 7 for t", translated(str.maketrans("st", "57")), LATIN),
    letters("@ for a, $ for s", translated(str.maketrans("as", "@$")), LATIN),
    letters("I for l", of_text(lambda text: text.replace("l", "I")), LATIN),
    letters("vowels in two signs", translated(TWO_SIGNS), (HINDI, MARATHI, BENGALI, GUJARATI, ODIA, PUNJABI)),
    letters("digits of the script", _native_digits, (HINDI, MARATHI, BENGALI, GUJARATI)),
    letters("signs of another script", translated(str.maketrans("ंःँ्", "ંઃઁ્")), (HINDI, MARATHI)),
    letters("Assamese ra", translated(str.maketrans("র", "ৰ")), (BENGALI,)),
    letters("ba with a nukta", translated({ord("র"): "ব\u09bc"}), (BENGALI,)),
    spaces("none", of_text(lambda text: re.sub(r"[^\S\n]", "", text))),
    spaces("none, nor a line", of_text(lambda text: "".join(text.split()))),
    spaces("none, nor a sign", of_text(lambda text: "".join(c for c in text if unicodedata.category(c)[0] in "LMC").replace("\n", ""))),
    spaces("after every second word", of_text(_joined_words)),
    spaces("in every fifth word", of_text(partial(_split_words, every=5))),
    spaces("in each word", of_text(partial(_split_words, every=1))),
    spaces("after each letter", _between(" ", 1)),
    spaces("points between letters", _between(".", 1)),
    spaces("hyphens in words", _between("-", 2)),
    spaces("wide spaces", of_text(lambda text: text.replace(" ", "\u2003\u00a0"))),
    spaces("underscores", of_text(lambda text: text.replace(" ", "_"))),
    spaces("margins", of_words(lambda word, _: f'<span style="margin-left:1ch">{word}</span>', between="")),
    spaces("inline blocks", of_words(lambda word, _: f'<span class="w">{word}</span>', ".w{display:inline-block;padding:0 .2em}", "")),
    spaces("a box for each letter", lambda text, _: paragraphs(re.sub(r"\S", lambda c: f'<i style="display:inline-block">{html.escape(c[0])}</i>', text))),
    spaces("cells of a table", of_words(lambda word, _: f"<table><tr><td>{word}</td></tr></table>", between="")),
    order("right-to-left override", lambda text, _: "".join(f"<p>\u202e{html.escape(line)}\u202c</p>" for line in reversed_lines(text))),
    order("bdo", lambda text, _: "".join(f'<p><bdo dir="rtl">{html.escape(line)}</bdo></p>' for line in reversed_lines(text))),
    order("unicode-bidi", lambda text, _: "".join(f'<p style="direction:rtl;unicode-bidi:bidi-override">{html.escape(line)}</p>' for line in reversed_lines(text))),
    scripts("Telugu", partial(_in_script, TELUGU), INDIC),
    scripts("Odia", partial(_in_script, ODIA), INDIC),
    labels("Marathi", of_text(str), tuple(language for language in SAMPLED if language != MARATHI), MARATHI),
    labels("English", of_text(str), INDIC, ENGLISH),
    labels("Marathi, a fifth of the words replaced", _fifth_replaced, tuple(language for language in SAMPLED if language != MARATHI), MARATHI),
)  # fmt: skip
