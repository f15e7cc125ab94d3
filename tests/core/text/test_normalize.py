"""Laws: tokens match a slow, step-by-step implementation of the definition; texts that differ only in Unicode form,
joiners, other ignorables, nukta signs or case have the same tokens; and tokenising tokens changes nothing.  The offsets
of a text's words are in order, and no cut splits a word or a grapheme cluster.

The tables leave out only code points that have nothing to normalise, and their file has what is computed.  The `regex`
package is the reference for grapheme clusters.
"""

import re
import sys
import unicodedata
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from neardup.core.languages import LANGUAGES
from neardup.core.text import look_alikes, normalize
from neardup.core.text.codepoints import FIRST, LIKE_LETTERS, SECOND, TWO_SIGNS, UNCASED, build_flagged_table
from neardup.core.text.extraction import Extraction
from neardup.core.text.html import extract_visible_text
from neardup.core.text.look_alikes import ACCENTS, map_forms, undisguise
from neardup.core.text.normalize import Located, locate_words, tokenize
from neardup.records import Language

from tests.support.graphemes import FAMILY, GRAPHEME_PARTS, boundaries
from tests.support.languages import (
    ASSAMESE,
    BENGALI,
    ENGLISH,
    GUJARATI,
    HINDI,
    KANNADA,
    MALAYALAM,
    MARATHI,
    ODIA,
    PUNJABI,
    TAMIL,
    TELUGU,
    TEXTS,
    URDU,
)
from tests.support.paths import SAMPLES
from tests.support.sampling import EXAMPLES, some_of

BLOCKS = {
    HINDI: range(0x0900, 0x0980),
    MALAYALAM: range(0x0D00, 0x0D80),
    BENGALI: range(0x0980, 0x0A00),
    MARATHI: range(0x0900, 0x0980),
    TAMIL: range(0x0B80, 0x0C00),
    TELUGU: range(0x0C00, 0x0C80),
    GUJARATI: range(0x0A80, 0x0B00),
    ENGLISH: range(0x0021, 0x0250),
    ODIA: range(0x0B00, 0x0B80),
    PUNJABI: range(0x0A00, 0x0A80),
    KANNADA: range(0x0C80, 0x0D00),
    ASSAMESE: range(0x0980, 0x0A00),
    URDU: range(0x0600, 0x0700),
}
LATIN_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyz")
ZWJ = "\u200d"
JOINERS = "\u200c\u00ad\ufeff\u2060"
# Separators, a danda, other ignorables, marks, astral letters, signs and a Deseret capital, a lone surrogate, NUL.
ANYWHERE = f" \n,'।{ZWJ}{JOINERS}\u034f\ufe0f\U000e0101\u0301\u0303\u0323\u0327😀𝐀𐐀𑄀\ud800\0"
# This sign and a mark compose to a code point that is not part of words; with a joiner between them they do not.
EXCLUDED = "¨"
# Code points that compose with a neighbour, possibly across dropped ones: where optimisations could go wrong.
FLAGGED = [chr(code) for code in np.flatnonzero(build_flagged_table() & (FIRST | SECOND)).tolist()]
CHILLU = {
    "ണ": "\N{MALAYALAM LETTER CHILLU NN}",
    "ന": "\N{MALAYALAM LETTER CHILLU N}",
    "ര": "\N{MALAYALAM LETTER CHILLU RR}",
    "ല": "\N{MALAYALAM LETTER CHILLU L}",
    "ള": "\N{MALAYALAM LETTER CHILLU LL}",
    "ക": "\N{MALAYALAM LETTER CHILLU K}",
}
VIRAMA = "\N{MALAYALAM SIGN VIRAMA}"
NUKTAS = {chr(c) for block in BLOCKS.values() for c in block if unicodedata.name(chr(c), "").endswith("SIGN NUKTA")}
COMPOSED = (
    "\u0929\u0931\u0934\u0958\u0959\u095a\u095b\u095c\u095d\u095e\u095f\u09dc\u09dd\u09df"
    "\u0a33\u0a36\u0a59\u0a5a\u0a5b\u0a5e\u0b5c\u0b5d"
)
IGNORABLE = {0xAD, 0x34F, 0x61C, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x3164, 0xFEFF, 0xFFA0}.union(
    range(0x180B, 0x1810), range(0x200B, 0x2010), range(0x202A, 0x202F), range(0x2060, 0x2070), range(0xFE00, 0xFE10)
).union(range(0xFFF0, 0xFFFD), range(0x1BCA0, 0x1BCA4), range(0x1D173, 0x1D17B), range(0xE0000, 0xE1000))
IGNORABLE |= {*range(9), *range(0x0E, 0x20), *range(0x7F, 0x85), *range(0x86, 0xA0), *range(0xFDD0, 0xFDF0)}
IGNORABLE |= {plane + end for plane in range(0, 0x40000, 0x10000) for end in (0xFFFE, 0xFFFF)}

BA, NUKTA, RA = "\u09ac", "\u09bc", "\u09b0"  # of Bengali: ba with a nukta looks the same as ra
SHOWN_AS_RA = re.compile(f"{BA}[{re.escape(''.join(map(chr, IGNORABLE)))}{''.join(NUKTAS)}]*{NUKTA}")

HOSTILE = [
    *FLAGGED,
    *CHILLU,
    *CHILLU.values(),
    *NUKTAS,
    *LIKE_LETTERS,
    *(BA + NUKTA),
    *"\u0d4d\u094d\u200d\u200c\u0301\u0345 \u1100\u1161\u11a8가ßﬁİKÅ",
    *"aоОнднеηὀ0１12@$x\u0336",
]

letters = {language: [chr(c) for c in block if chr(c) not in EXCLUDED] for language, block in BLOCKS.items()}
PAGES = sorted((SAMPLES / "stories").glob("*/*.html"))
thorough = settings(max_examples=8 * EXAMPLES, deadline=None)
unhurried = settings(deadline=None)  # the first call builds the table
every_language = pytest.mark.parametrize("language", LANGUAGES)
in_one_script = st.sampled_from(list(LANGUAGES)).flatmap(lambda n: st.text(st.sampled_from([*letters[n], *ANYWHERE])))
in_all_scripts = st.text(st.sampled_from([c for drawn in letters.values() for c in drawn] + list(ANYWHERE)))

any_code_point = st.integers(0, sys.maxunicode).map(chr)  # lone surrogates, too
hostile = st.text(st.one_of(st.sampled_from(HOSTILE), any_code_point))


def slow_tokens(text: str) -> list[bytes]:
    """The definition of tokens, step by step."""
    text = SHOWN_AS_RA.sub(RA, unicodedata.normalize("NFC", text))
    text = undisguise(slow_signs(text), map_forms())
    for letter, chillu in CHILLU.items():
        text = text.replace(letter + VIRAMA + ZWJ, chillu)
    text = "".join(c for c in text if ord(c) not in IGNORABLE)
    bare = "".join(c for c in unicodedata.normalize("NFD", text) if c not in NUKTAS)
    text = unicodedata.normalize("NFC", unicodedata.normalize("NFC", bare).casefold())
    text = unicodedata.normalize("NFC", "".join(c for c in text if not any(a <= ord(c) < b for a, b in ACCENTS)))
    text = text.translate({ord(digit): letter for digit, letter in LIKE_LETTERS.items()})
    for _ in range(2):  # two signs may make the first of two others
        for signs, vowel in TWO_SIGNS.items():
            text = text.replace(signs, vowel)
    words = "".join(c if unicodedata.category(c)[0] in "LMN" else " " for c in text).split()
    return [slow_digits(word).encode("utf-8") for word in words]


def slow_signs(text: str) -> str:
    """A text with `a` for each @ and `s` for each $ between letters from a to z, whatever shows nothing between."""

    def reads_as_letter(characters: str) -> bool:
        shown = (c for c in characters if c not in "@$" and not is_dropped(c))
        first = next(shown, "")
        return map_forms().get(ord(first), first).casefold() in LATIN_LETTERS if first else False

    return "".join(
        {"@": "a", "$": "s"}[c]
        if c in "@$" and reads_as_letter(text[n + 1 :]) and reads_as_letter(text[:n][::-1])
        else c
        for n, c in enumerate(text)
    )


def is_dropped(c: str) -> bool:
    return ord(c) in IGNORABLE or c in NUKTAS or any(a <= ord(c) < b for a, b in ACCENTS)


def slow_digits(word: str) -> str:
    """A word with letters for the digits that stand for them."""
    digits = {"0": "o", "1": "l", "3": "e", "4": "a", "5": "s", "7": "t"}
    kinds = "".join("a" if c in LATIN_LETTERS else "1" if c in digits else "?" for c in word)
    between = any(c == "1" and "a" in kinds[:n] and "a" in kinds[n:] for n, c in enumerate(kinds))
    if "?" in kinds or not (between or kinds.startswith(("1aaa", "11aaa"))):
        return word
    return "".join(digits.get(c, c) for c in word)


def joined(words: list[bytes]) -> str:
    return b" ".join(words).decode()


@thorough
@given(st.one_of(in_one_script, in_all_scripts))
def test_tokens_match_the_definition(text: str) -> None:
    assert tokenize(text) == slow_tokens(text)


def normalised_in_full(text: str) -> list[bytes]:
    """The tokens computed with NFC, even if the table suffices."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(normalize, "_find_beyond_table", lambda codes: np.arange(len(codes)))
        return tokenize(text)


@thorough
@given(st.one_of(in_one_script, hostile))
def test_skipping_nfc_changes_no_token(text: str) -> None:
    assert tokenize(text) == normalised_in_full(text)


@unhurried
@given(st.lists(st.one_of(in_one_script, hostile), min_size=1, max_size=5))
def test_a_long_text_has_the_normal_form_of_the_library(texts: list[str]) -> None:
    text = " ".join(texts)
    long = " ".join([text] * (normalize.LONG_TEXT // (len(text) + 1) + 2))
    assert normalize.nfc(long) == unicodedata.normalize("NFC", long)


@unhurried
@given(st.one_of(in_one_script, in_all_scripts))
def test_tokens_are_their_own_tokens(text: str) -> None:
    assert tokenize(joined(tokenize(text))) == tokenize(text)


@unhurried
@given(in_one_script)
def test_the_unicode_form_changes_no_token(text: str) -> None:
    assert (
        tokenize(unicodedata.normalize("NFC", text)) == tokenize(unicodedata.normalize("NFD", text)) == tokenize(text)
    )


@unhurried
@given(in_one_script, st.data())
def test_an_ignorable_changes_no_token_anywhere(text: str, data: st.DataObject) -> None:
    """Except inside a chillu sequence of Malayalam, where a ZWJ has a meaning and nothing may come between."""
    text = unicodedata.normalize("NFD", text)
    at = data.draw(st.integers(0, len(text)).filter(lambda n: VIRAMA not in text[max(n - 1, 0) : n + 1]))
    put = data.draw(st.sampled_from(ZWJ + JOINERS))
    assert tokenize(text[:at] + put + text[at:]) == tokenize(text)


@unhurried
@given(in_one_script)
def test_nukta_signs_change_no_token(text: str) -> None:
    """Except behind the Bengali ba, which looks like a ra with it."""
    text = unicodedata.normalize("NFD", text)
    assume(not SHOWN_AS_RA.search(text))
    bare = "".join(c for c in text if c not in NUKTAS)
    assert tokenize(bare) == tokenize(text)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: f"{page.parent.name}-{page.stem}")
def test_tokens_of_real_stories_match_the_definition(page: Path) -> None:
    text = extract_visible_text(page.read_text(encoding="utf-8"), Extraction("article .story, div.post-body"))
    words = tokenize(text)
    assert words == slow_tokens(text)
    assert len(words) > 50
    assert tokenize(text.upper()) == words, "upper case"
    assert tokenize(unicodedata.normalize("NFD", text)) == words, "NFD"
    assert tokenize(joined(words)) == words, "tokens of the tokens"


def test_ideographs_hangul_and_private_use_have_nothing_to_normalise() -> None:
    for code in (code for uncased in UNCASED for code in uncased):
        character = chr(code)
        has_case = unicodedata.category(character)[0] in "LMN" and character.casefold() != character
        assert not has_case, f"U+{code:04X} has case"
        assert not unicodedata.combining(character), f"U+{code:04X} combines"
        assert not unicodedata.decomposition(character), f"U+{code:04X} has a decomposition"


def test_the_file_has_the_tables_that_are_computed() -> None:
    arrays: Iterable[tuple[Any, Any]] = zip(normalize.load_tables(), normalize.compute_tables(), strict=True)
    for kept, computed in arrays:
        np.testing.assert_array_equal(kept, computed, "run `python -m neardup.core.text.normalize`", strict=True)
    assert normalize.load_forms() == look_alikes.map_forms(), "run `python -m neardup.core.text.normalize`"


def test_under_another_version_of_unicode_the_tables_are_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(normalize, "compute_tables", lambda: "computed")
    read: Callable[[], object] = normalize.load_tables.__wrapped__
    assert read() != "computed"
    monkeypatch.setattr(unicodedata, "unidata_version", "99.0.0")
    assert read() == "computed"


GOLDEN = {
    "HINDI": "जमीन पर कलम गिरी हिन्दी की २५ किताबें पढीं क्ष और क्षमा बडी सडक",
    "MALAYALAM": "അവൻ പറഞ്ഞു അവൻ വന്നു കാൽ കാൽ വാർത്തകൾ ൧൨ എണ്ണം മഴ പെയ്തു",
    "BENGALI": "বাডির পডা শেষ ঢাকায ১২টা বাজে র্যাব আষাঢের মেঘ আমার ঘর",
    "MARATHI": "दुसर्या दिवशी सुर्या म्हणाला चला ३ वाजले वार्यावर पान हलले",
    "TAMIL": "கொக்கு கோவிலுக்குப் போனது கஉ நாட்கள் கழித்து ஸ்ரீ வந்தான்",
    "TELUGU": "రాజు కథ చెప్పాడు క్ష మరియు క్ష ౧౨ రోజులు గడిచాయి",
    "GUJARATI": "વાર્તા પૂરી થઈ ફોન વાગ્યો ૧ર વાગ્યે ક્ષણ આવી",
    "ENGLISH": "the strasse s café isn t fair ms sorensen o neil walked 25km in the rain to school",
    "ODIA": "ବଡ ଘରେ ପଢା ସରିଲା ୧୨ଟା ବାଜିଛି ମୟୂର ନାଚିଲା",
    "PUNJABI": "ਸਹਿਰ ਦੀ ਜਮੀਨ ਖਬਰ ਤੇ ਫਸਲ ੧੨ ਵਜੇ ਪੱਗ ਬੰਨ੍ਹੀ",
    "KANNADA": "ಹಳ್ಳಿಯ ಶಾಲೆಯಲ್ಲಿ ೧೨ ಮಕ್ಕಳು ಓದಿದರು ಕ್ಷ ಮತ್ತು ಕ್ಷ ರ್ಯಾಂಕ್ ಫೋನ್ ಜಮೀನ್ ಕೋಳಿ ಕೋಳಿ ಕೋಳಿ ದುಃಖ",
    "ASSAMESE": "গাঁৱৰ পঢাশালিত ১২টা ল ৰা ছোৱালী আছিল বাডি বডো ড ড ক্ষমা ৰ্যাব সময মযূৰ উৎসৱ কো কো চাঁদ",
    "URDU": "گاؤں کے ۱۲ بچّے کتابیں پڑھتے ہیں ٹھیک ہے وہ گئے میروم آ آئے ؤ ؤ ۂ ۂ ۓ ۓ اُردُو کتـــاب مَحبّت ٤٥ كتاب هي",
}


@every_language
def test_the_golden_texts_have_these_tokens(language: Language) -> None:
    assert [word.decode() for word in tokenize(TEXTS[language])] == GOLDEN[language].split(" ")
    for joiner in JOINERS:
        assert joined(tokenize(joiner.join(unicodedata.normalize("NFD", GOLDEN[language])))) == GOLDEN[language], joiner


@every_language
def test_a_mark_never_ends_a_word(language: Language) -> None:
    for mark in letters[language]:
        if unicodedata.category(mark).startswith("M") and mark not in NUKTAS:
            word = letters[language][0x15] + mark + letters[language][0x16]
            assert len(tokenize(word)) == 1, f"{unicodedata.name(mark)} splits {word!r}"


@every_language
def test_a_number_is_a_token(language: Language) -> None:
    digits = [c for c in letters[language] if unicodedata.category(c) == "Nd"]
    assert len(digits) == (20 if language == URDU else 10), "Arabic has two sets of digits"
    read_as = [LIKE_LETTERS.get(digit, digit) for digit in digits]
    assert [tokenize(f"({digit})") for digit in digits] == [[reading.encode()] for reading in read_as]
    assert len(tokenize("".join(digits))) == 1


@every_language
def test_punctuation_separates_words(language: Language) -> None:
    first, second = tokenize(TEXTS[language])[:2]
    for sign in "।॥.,;:!?'\"’“”()[]-–—_/&#%…|\t\n\r\v\u00a0\u2028" + "@" * (language != ENGLISH):
        assert tokenize(f"{first.decode()}{sign}{second.decode()}") == [first, second], unicodedata.name(
            sign, repr(sign)
        )


def test_combining_marks_stay_and_surrogates_separate_words() -> None:
    assert tokenize("हिन्दी") == ["हिन्दी".encode()]
    assert tokenize("a\ud800b c\udfffd") == [b"a", b"b", b"c", b"d"], "surrogates separate words"
    assert tokenize("a\0b\x01c\x9f\ufffed\ufff9") == [b"abcd"], "browsers show nothing for these"


@pytest.mark.parametrize(("letter", "chillu"), CHILLU.items(), ids=[unicodedata.name(c) for c in CHILLU.values()])
def test_a_chillu_sequence_equals_its_atomic_letter(letter: str, chillu: str) -> None:
    assert tokenize(f"അ{letter}{VIRAMA}{ZWJ} ക") == tokenize(f"അ{chillu} ക") == [f"അ{chillu}".encode(), "ക".encode()]
    assert tokenize(f"അ{letter}{VIRAMA} ക") != tokenize(f"അ{chillu} ക"), "without the joiner it is not a chillu"


@pytest.mark.parametrize("composed", COMPOSED, ids=unicodedata.name)
def test_a_precomposed_nukta_letter_equals_its_bare_letter(composed: str) -> None:
    letter, nukta = list(unicodedata.normalize("NFD", composed))
    assert nukta in NUKTAS
    assert tokenize(composed) == tokenize(letter + nukta) == tokenize(letter) == [letter.encode()]


@pytest.mark.parametrize("nothing", ["", " \n", "।!—😀", "\ud800", "\udfff\ud83d", "\0\0", "\u00ad\u200d\ufeff", "़"])
def test_a_text_without_letters_has_no_tokens(nothing: str) -> None:
    assert tokenize(nothing) == []
    assert tokenize(f"क{nothing} ख") == ["क".encode(), "ख".encode()]


@pytest.mark.parametrize("between", ["", "\u200c", "\u093c"])
def test_a_bengali_ba_with_a_nukta_is_the_ra_that_it_looks_like(between: str) -> None:
    assert tokenize(f"আমাব{between}\u09bc ব\u09cd\u09bcম ঘব") == tokenize("আমার র্ম ঘব")
    assert tokenize(f"আমাব ক{between}\u09bc") == tokenize("আমাব ক"), "the nukta of another letter"


any_text = st.one_of(
    in_one_script,
    in_all_scripts,
    st.text(),
    st.lists(
        st.one_of(st.sampled_from(GRAPHEME_PARTS), st.sampled_from([c for drawn in letters.values() for c in drawn]))
    ).map("".join),
)


def assert_located(text: str) -> Located:
    found = locate_words(text)
    places = list(zip(found.starts.tolist(), found.ends.tolist(), strict=True))
    assert found.text == unicodedata.normalize("NFC", text)
    assert [tokenize(found.text[start:end]) for start, end in places] == [[word] for word in tokenize(text)]
    assert places == sorted(places)
    cuts = found.cuts.tolist()
    assert cuts == sorted(cuts)
    assert {0, len(found.text)} <= set(cuts)
    assert not set(cuts) - boundaries(found.text), "a cut splits a character"
    return found


@thorough
@given(any_text)
def test_located_offsets_are_those_of_the_words(text: str) -> None:
    found = assert_located(text)
    inside = {at for start, end in zip(found.starts, found.ends, strict=True) for at in range(start + 1, end)}
    assert not inside.intersection(found.cuts.tolist()), "a cut splits a word"


@unhurried
@given(any_text, st.data())
def test_a_span_contains_its_words_and_has_cuts_at_both_ends(text: str, data: st.DataObject) -> None:
    found, words = locate_words(text), tokenize(text)
    first = data.draw(st.integers(0, len(words)))
    end = data.draw(st.integers(first, len(words)))
    if first == end:
        return
    start, stop = found.find_span(first, end)
    assert {start, stop} <= set(found.cuts.tolist())
    assert start <= found.starts[first] < found.ends[end - 1] <= stop
    held = tokenize(found.text[start:stop])
    assert any(held[n : n + end - first] == words[first:end] for n in range(len(held)))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: f"{page.parent.name}-{page.stem}")
def test_a_span_of_a_real_page_contains_only_its_words(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for form in ("NFC", "NFD"):
        found = assert_located(unicodedata.normalize(form, text))
        words = tokenize(text)
        for first in range(0, len(words) - 10, 7):
            start, stop = found.find_span(first, first + 10)
            assert tokenize(found.text[start:stop]) == words[first : first + 10]
            assert (start, stop) == (found.starts[first], found.ends[first + 9]), "the span has text beside its words"


@every_language
def test_the_golden_text_has_cuts_around_each_word(language: Language) -> None:
    found = assert_located(TEXTS[language])
    for start, end in zip(found.starts.tolist(), found.ends.tolist(), strict=True):
        assert {start, end} <= set(found.cuts.tolist()), found.text[start:end]


@pytest.mark.parametrize("sign", GRAPHEME_PARTS, ids=lambda sign: " ".join(f"{ord(c):x}" for c in sign))
def test_characters_beside_a_word_are_not_split(sign: str) -> None:
    for language in some_of(LANGUAGES, GRAPHEME_PARTS.index(sign), 3):
        word = TEXTS[language].split()[0]
        for text in (f"{sign}{word}", f"{word}{sign}", f"{word} {sign}{word}{sign} {word}", f"{FAMILY}{sign}{word}"):
            assert_located(text)


def test_a_span_includes_the_base_of_an_initial_mark() -> None:
    found = locate_words("अ 😀\u0301ब")
    assert found.text[slice(*found.find_span(1, 2))] == "😀\u0301ब"


def test_a_family_before_a_word_stays_whole() -> None:
    found = locate_words(f"क {FAMILY}ख {FAMILY}\u200dग")
    assert [found.text[slice(*found.find_span(n, n + 1))] for n in range(3)] == ["क", "ख", f"{FAMILY}\u200dग"]


def test_no_cut_splits_any_grapheme_cluster_of_unicode() -> None:
    drawn = [
        chr(code) for code in range(sys.maxunicode + 1) if unicodedata.category(chr(code)) not in ("Cn", "Cs", "Co")
    ]
    text = "".join(f" {c}x{c}." for c in drawn)
    found = locate_words(text)
    assert not set(found.cuts.tolist()) - boundaries(found.text)
