"""Laws: in every language all chapters of a serial have one stem, and each has its number; a planted chain of chapters
is found in any order of the dots, and other dots make none.
"""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from neardup.core.serials import (
    COUNTED,
    NAMELESS,
    NUMBERS,
    STEPS,
    Dot,
    align_chapters,
    find_ranges,
    find_stem,
    parse_chapter_title,
)

# Stem, word for chapter, and the digit 0, by language.
SERIALS = {
    "en": ("The House by the River", "Chapter", "0"),
    "hi": ("नदी किनारे का घर", "भाग", "०"),
    "mr": ("नदीकाठचे घर", "प्रकरण", "०"),
    "bn": ("নদীর ধারের বাড়ি", "অধ্যায়", "০"),
    "ta": ("ஆற்றங்கரை வீடு", "அத்தியாயம்", "௦"),
    "te": ("నది ఒడ్డున ఇల్లు", "భాగం", "౦"),
    "ml": ("പുഴയോരത്തെ വീട്", "ഭാഗം", "൦"),
    "gu": ("નદી કિનારે ઘર", "પ્રકરણ", "૦"),
    "or": ("ନଦୀ କୂଳର ଘର", "ଭାଗ", "୦"),
    "pa": ("ਨਦੀ ਕੰਢੇ ਘਰ", "ਭਾਗ", "੦"),
}
FORMS = (
    "{stem} {word} {n}", "{stem} - {word}-{n}", "{stem} ({word} {n})", "{stem}: {word}{n}", "{stem} {n}",
    "{stem} [{n}]", "{stem} | {word} {n}: {stem}", "{stem} {word} {n}/99", "{stem}, {n} {word}",
)  # fmt: skip


@given(st.sampled_from(sorted(SERIALS)), st.integers(1, 999), st.sampled_from(FORMS), st.booleans())
def test_every_form_of_a_title_has_the_stem_and_the_number(language: str, n: int, form: str, native: bool) -> None:
    stem, word, zero = SERIALS[language]
    shown = "".join(chr(ord(zero) + int(digit)) for digit in str(n)) if native else str(n)
    title = form.format(stem=stem, word=word, n=shown)
    found = parse_chapter_title(title)
    assert found is not None, title
    assert found[:2] == (find_stem(stem), n), title
    assert found.serial == found.stem


@given(st.sampled_from(sorted(SERIALS)), st.integers(1, 999), st.sampled_from(FORMS))
def test_a_serial_whose_titles_have_no_stem_is_named_by_the_word_for_chapter(language: str, n: int, form: str) -> None:
    found = parse_chapter_title(form.format(stem="", word=SERIALS[language][1], n=n))
    assert found is not None and found[:2] == ("", n)
    assert found.serial == (find_stem(SERIALS[language][1]) if "{word}" in form else NAMELESS)


@pytest.mark.parametrize(
    ("title", "stem", "number"),
    [
        ("Chapter IX: The Storm", "", 9),
        ("The House, Part Two", "the house", 2),
        ("12. The Storm", "", 12),
        ("The House, Season 2, Episode 05", "the house season 2", 5),
        ("The House, Book 3", "the house", 3),
        ("പുഴ 5-ാം ഭാഗം", "പുഴ", 5),
        ("नदी का घर - दूसरा भाग", "नदी का घर", 2),
        ("ఇల్లు రెండవ భాగం", "ఇల్లు", 2),
    ],
)
def test_numbers_in_words_and_volumes(title: str, stem: str, number: int) -> None:
    found = parse_chapter_title(title)
    assert found is not None and found[:2] == (stem, number)


@pytest.mark.parametrize("title", ["", "एक लड़की", "7 wonders", "The First Day", "Part of the River", "2019 की बात"])
def test_other_titles_are_no_chapters(title: str) -> None:
    assert parse_chapter_title(title) is None


def test_no_word_is_two_numbers() -> None:
    forms = [(form, n) for row in COUNTED for n, forms in enumerate(row.split(), 1) for form in forms.split("|")]
    assert len(NUMBERS) == len({form for form, _ in forms})
    assert {form: n for form, n in forms if NUMBERS.get(form.casefold(), n) != n} == {}


CHAPTERS = 60
seeds = st.integers(0, 2**32)
steps = st.lists(st.sampled_from(sorted(STEPS)), min_size=1, max_size=15)


def scattered(rng: random.Random, count: int) -> list[Dot]:
    """Dots anywhere, of few words, of which no two follow each other."""
    places = [(first, second) for first in range(1, CHAPTERS, 5) for second in range(1, CHAPTERS, 5)]
    return [Dot(*place, rng.randint(40, 60)) for place in rng.sample(places, count)]


@given(seeds, steps, st.integers(1, 20), st.integers(1, 20))
def test_a_planted_chain_is_found(seed: int, taken: list[tuple[int, int]], first: int, second: int) -> None:
    """Whole or a part, shifted by any number of chapters, with chapters left out or merged."""
    chain = [(first, second)]
    for step in [(1, 1), *(step for taken_step in taken for step in (taken_step, (1, 1)))]:
        chain.append((chain[-1][0] + step[0], chain[-1][1] + step[1]))
    dots = [Dot(*place, 200) for place in chain]
    random.Random(seed).shuffle(dots)
    [found] = align_chapters(dots)
    assert found == chain
    assert find_ranges(found) == tuple((start, end) for start, end in zip(chain[0], chain[-1], strict=True))


@given(seeds, st.integers(3, 12), st.integers(0, 40))
def test_dots_beside_a_chain_change_nothing(seed: int, length: int, start: int) -> None:
    rng = random.Random(seed)
    chain = [Dot(100 + n, start + 100 + n, rng.randint(40, 900)) for n in range(length)]
    dots = [*chain, *scattered(rng, 60)]
    rng.shuffle(dots)
    assert align_chapters(dots) == [[dot[:2] for dot in chain]]


@given(seeds, st.integers(3, 12), st.integers(3, 12))
def test_what_all_chapters_share_aligns_nothing(seed: int, firsts: int, seconds: int) -> None:
    """A preface or a form of about one length; the chapters that are copied are found all the same."""
    rng = random.Random(seed)
    preface = [Dot(n, m, rng.randint(45, 60)) for n in range(firsts) for m in range(seconds)]
    assert align_chapters(preface) == []
    copied = [Dot(n, n, 500) for n in range(min(firsts, seconds))]
    assert align_chapters([*preface, *copied]) == [[dot[:2] for dot in copied]]


@given(seeds)
def test_scattered_dots_and_the_wrong_order_align_nothing(seed: int) -> None:
    rng = random.Random(seed)
    assert align_chapters(scattered(rng, 100)) == []
    assert align_chapters([Dot(n, 50 - n, 300) for n in range(50)]) == []
    assert align_chapters([Dot(n, n, 300) for n in range(2)]) == []
