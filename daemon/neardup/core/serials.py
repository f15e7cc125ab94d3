"""Serials: which one a title names, with the number of the chapter, and which chapters of one are those of another.

"The House by the River, part 5", "नदी का घर भाग-५" and "நதி வீடு 5" are the stem of the serial and a number.  The number
stands beside a word for chapter, in digits of any script, as a Roman numeral or as one of the first numbers in words;
or it ends the title, or begins it before a punctuation mark.  What follows a word for chapter with its number is the
title of the chapter alone.  A word for volume counts only where there is no word for chapter, so that volumes are
serials of their own.

Each pair of chapters that share text is a dot in a plane: the place of one chapter along one axis, that of the other
along the other.  Where a serial copies another, dots follow each other in a chain.  The best chain is the local
alignment of Smith and Waterman (Identification of common molecular subsequences, J. Mol. Biol. 1981), over the dots
alone, as anchors are chained in comparing genomes (Eppstein, Galil, Giancarlo and Italiano, Sparse dynamic programming,
J. ACM 1992).  A step of a chain goes on by a chapter in both serials; it may leave out a chapter of either, and it may
stay at a chapter of one, which is then two merged, or stands for two that were cut at other places.  Such steps add
about half as much to the score: by chance, dots that nearly follow each other are far more frequent.

What many chapters share (a preface, a disclaimer, a form) makes dots everywhere, and a chain may be laid through them
anywhere.  So a dot counts only if it singles out a chapter: if it is among the two strongest dots of a chapter,
and no more than these two have half of the strength of the strongest.
"""

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

NAMELESS = "#"  # names a serial whose titles hold neither a stem nor a word for chapter


class ChapterTitle(NamedTuple):
    """The stem is what all chapters of a serial have in common, in lower case; it may be empty, as `word` may."""

    stem: str
    number: int
    word: str = ""  # for chapter or volume

    @property
    def serial(self) -> str:
        """The name of the serial: its stem, or what is left in common of "Part 1" and "Part 2"."""
        return self.stem or self.word or NAMELESS


def _list_words(text: str) -> frozenset[str]:
    return frozenset(unicodedata.normalize("NFC", text).casefold().split())


CHAPTER_WORDS = _list_words(
    """
    chapter chapters chap ch part parts pt episode episodes epi ep eps instalment installment
    भाग अध्याय प्रकरण पर्व परिच्छेद कांड काण्ड किस्त किश्त क़िस्त कड़ी पार्ट चैप्टर एपिसोड
    পর্ব ভাগ অধ্যায় পরিচ্ছেদ কিস্তি পার্ট চ্যাপ্টার এপিসোড
    பாகம் பகுதி அத்தியாயம் அத்யாயம் பார்ட் எபிசோட்
    భాగం భాగము అధ్యాయం అధ్యాయము పర్వం పార్ట్ ఎపిసోడ్
    ഭാഗം അധ്യായം അദ്ധ്യായം പാർട്ട് എപ്പിസോഡ്
    ભાગ પ્રકરણ અધ્યાય પર્વ હપ્તો પાર્ટ એપિસોડ
    ଭାଗ ଅଧ୍ୟାୟ ପର୍ବ ପାର୍ଟ ଏପିସୋଡ
    ਭਾਗ ਅਧਿਆਇ ਕਾਂਡ ਕਿਸ਼ਤ ਪਾਰਟ ਐਪੀਸੋਡ
    """
)
VOLUME_WORDS = _list_words(
    "volume vol book season खंड खण्ड सीजन सीज़न খণ্ড সিজন காண்டம் சீசன் ఖండం సీజన్ ഖണ്ഡം സീസൺ ખંડ સીઝન ଖଣ୍ଡ ਖੰਡ ਸੀਜ਼ਨ"
)
# Numbers in words from 1 on, of several forms where "|" stands between them.
COUNTED = (
    (
        "one|first two|second three|third four|fourth five|fifth six|sixth seven|seventh eight|eighth nine|ninth"
        " ten|tenth eleven|eleventh twelve|twelfth thirteen fourteen fifteen sixteen seventeen eighteen nineteen twenty"
    ),
    (
        "एक|पहला|पहली|प्रथम दो|दूसरा|दूसरी|द्वितीय तीन|तीसरा|तीसरी|तृतीय"
        " चार|चौथा|चौथी|चतुर्थ पाँच|पांच|पाँचवाँ|पांचवां|पंचम छह|छः|छठा|षष्ठ सात|सातवाँ|सातवां|सप्तम आठ|आठवाँ|आठवां|अष्टम"
        " नौ|नौवाँ|नौवां|नवम दस|दसवाँ|दसवां|दशम"
    ),
    "पहिला दोन|दुसरा तिसरा चौथा पाच|पाचवा सहा|सहावा सातवा आठवा नऊ|नववा दहा|दहावा",
    "এক|প্রথম দুই|দ্বিতীয় তিন|তৃতীয় চার|চতুর্থ পাঁচ|পঞ্চম ছয়|ষষ্ঠ সাত|সপ্তম আট|অষ্টম নয়|নবম দশ|দশম",
    "ஒன்று|முதல் இரண்டு|இரண்டாம் மூன்று|மூன்றாம் நான்கு|நான்காம் ஐந்து|ஐந்தாம் ஆறு|ஆறாம் ஏழு|ஏழாம் எட்டு|எட்டாம் ஒன்பது|ஒன்பதாம் பத்து|பத்தாம்",
    ("ఒకటి|మొదటి రెండు|రెండవ మూడు|మూడవ నాలుగు|నాలుగవ ఐదు|ఐదవ ఆరు|ఆరవ ఏడు|ఏడవ ఎనిమిది|ఎనిమిదవ తొమ్మిది|తొమ్మిదవ పది|పదవ"),
    "ഒന്ന്|ഒന്നാം രണ്ട്|രണ്ടാം മൂന്ന്|മൂന്നാം നാല്|നാലാം അഞ്ച്|അഞ്ചാം ആറ്|ആറാം ഏഴ്|ഏഴാം എട്ട്|എട്ടാം ഒമ്പത്|ഒമ്പതാം പത്ത്|പത്താം",
    "એક|પહેલો|પ્રથમ બે|બીજો ત્રણ|ત્રીજો ચાર|ચોથો પાંચ|પાંચમો છ|છઠ્ઠો સાત|સાતમો આઠ|આઠમો નવ|નવમો દસ|દસમો",
    "ଏକ|ପ୍ରଥମ ଦୁଇ|ଦ୍ୱିତୀୟ ତିନି|ତୃତୀୟ ଚାରି|ଚତୁର୍ଥ ପାଞ୍ଚ|ପଞ୍ଚମ ଛଅ|ଷଷ୍ଠ ସାତ|ସପ୍ତମ ଆଠ|ଅଷ୍ଟମ ନଅ|ନବମ ଦଶ|ଦଶମ",
    "ਇੱਕ|ਇਕ|ਪਹਿਲਾ ਦੋ|ਦੂਜਾ ਤਿੰਨ|ਤੀਜਾ ਚਾਰ|ਚੌਥਾ ਪੰਜ|ਪੰਜਵਾਂ ਛੇ|ਛੇਵਾਂ ਸੱਤ|ਸੱਤਵਾਂ ਅੱਠ|ਅੱਠਵਾਂ ਨੌਂ|ਨੌਵਾਂ ਦਸ|ਦਸਵਾਂ",
)
NUMBERS = {
    word: n
    for row in COUNTED
    for n, forms in enumerate(unicodedata.normalize("NFC", row).casefold().split(), 1)
    for word in forms.split("|")
}
ROMAN = re.compile(r"(x{0,3})(ix|iv|v?i{0,3})")
JOINERS = str.maketrans("", "", "\u200c\u200d")
# Digits, or letters with their marks, of which the Indic ones are no letters to a regular expression.
TOKENS = re.compile(r"\d+|(?:(?!\d)[^\W_]|(?![\d\u0964\u0965])[\u0300-\u036f\u0900-\u0dff])+")
OF_SO_MANY = re.compile(r"(\d)\s*/\s*\d+")
BEFORE_TITLE = re.compile(r"\W*(\d+)\s*[.):|\-\u2013\u2014]")
LONGEST_NUMBER = 6  # digits
LONGEST_ENDING = 3  # characters: 5th, 5ம், 5ാം


def find_stem(title: str) -> str:
    """The stem of the chapters of a serial that has this title, without the number of a chapter."""
    return " ".join(TOKENS.findall(_fold(title)))


def _fold(title: str) -> str:
    return OF_SO_MANY.sub(r"\1", unicodedata.normalize("NFC", title).casefold().translate(JOINERS))


def parse_chapter_title(title: str) -> ChapterTitle | None:
    """The stem and the number in a title; None where it has no number of a chapter."""
    text = _fold(title)
    tokens = TOKENS.findall(text)
    for words in (CHAPTER_WORDS, VOLUME_WORDS):
        for place in reversed(range(len(tokens))):
            if tokens[place] in words and (found := _number_beside(tokens, place)) is not None:
                number, first = found
                return ChapterTitle(" ".join(tokens[:first]), number, tokens[place])
    if tokens and (last := _parse_number(tokens[-1])) is not None:
        return ChapterTitle(" ".join(tokens[:-1]), last)
    before = BEFORE_TITLE.match(text)
    leading = before and _parse_number(before[1])
    return None if leading is None else ChapterTitle("", leading)


def _number_beside(tokens: list[str], place: int) -> tuple[int, int] | None:
    """The number beside a word for chapter, better after it, and the place where the two begin."""
    if place + 1 < len(tokens) and (number := _number(tokens[place + 1])) is not None:
        return number, place
    for before in (place - 1, place - 2):
        if before < 0 or (before == place - 2 and len(tokens[place - 1]) > LONGEST_ENDING):
            break
        number = _parse_number(tokens[before]) if before == place - 2 else _number(tokens[before], is_roman=False)
        if number is not None:
            return number, before
    return None


def _number(token: str, *, is_roman: bool = True) -> int | None:
    if (number := _parse_number(token)) is not None:
        return number
    if (number := NUMBERS.get(token)) is None and is_roman and (roman := ROMAN.fullmatch(token)) and token:
        tens, rest = roman.groups()
        return 10 * len(tens) + {"ix": 9, "iv": 4}.get(rest, 5 * rest.startswith("v") + rest.count("i"))
    return number


def _parse_number(token: str) -> int | None:
    return int(token) if token.isdecimal() and len(token) <= LONGEST_NUMBER else None


# The alignment of two serials.

LEAST_CHAPTERS = 3  # of either serial, in a chain
MOST_ALIKE = 2  # dots of a chapter of which one may be meant
ALIKE = 0.5  # of the words of the strongest dot of a chapter
# By how many chapters a step goes on in either serial, and what the dot that it leads to adds to the score.  Of steps
# with the same score the first is taken.
STEPS = {(1, 1): 1.0, (0, 1): 0.6, (1, 0): 0.6, (1, 2): 0.5, (2, 1): 0.5, (2, 2): 0.5}
LEAST_SCORE = 3.0  # that of three chapters in a row: where some are left out or merged, there must be more
Place = tuple[int, int]


class Dot(NamedTuple):
    """A pair of chapters: their numbers in the two serials, and the words that one copies from the other."""

    first: int
    second: int
    words: int


class Ranges(NamedTuple):
    """The first and the last chapter of a chain, in either serial."""

    first: tuple[int, int]
    second: tuple[int, int]


def align_chapters(dots: Sequence[Dot]) -> list[list[Place]]:
    """The chains of LEAST_CHAPTERS or more chapters of either serial, the best one first; each ascends.

    The order of the dots does not matter.  A chain leaves no dots to others that are between chapters of its own.
    """
    left, chains = _find_telling_places(dots), list[list[Place]]()
    while chain := _find_best_chain(left):
        firsts, seconds = {first for first, _ in chain}, {second for _, second in chain}
        if min(len(firsts), len(seconds)) >= LEAST_CHAPTERS:
            chains.append(chain)
            left = {place for place in left if place[0] not in firsts or place[1] not in seconds}
        left -= set(chain)
    return chains


def find_ranges(chain: Sequence[Place]) -> Ranges:
    """From which chapter to which a chain reaches."""
    firsts, seconds = zip(*chain, strict=True)
    return Ranges((min(firsts), max(firsts)), (min(seconds), max(seconds)))


def _find_telling_places(dots: Iterable[Dot]) -> set[Place]:
    """The places of the dots that single out a chapter."""
    words_at: defaultdict[Place, int] = defaultdict(int)
    for first, second, words in dots:
        words_at[first, second] = max(words_at[first, second], words)
    found = set[Place]()
    for side in (0, 1):
        of_chapter: defaultdict[int, list[Place]] = defaultdict(list)
        for place in words_at:
            of_chapter[place[side]].append(place)
        for places in of_chapter.values():
            strongest = max(words_at[place] for place in places)
            alike = [place for place in places if words_at[place] >= ALIKE * strongest]
            if len(alike) <= MOST_ALIKE:
                found.update(alike)
    return found


def _find_best_chain(places: set[Place]) -> list[Place]:
    """The chain of the highest score; none where all have less than LEAST_SCORE."""
    scores, before = dict[Place, float](), dict[Place, Place]()
    for place in sorted(places):
        scores[place] = 1.0
        for step, gain in STEPS.items():
            previous = place[0] - step[0], place[1] - step[1]
            if previous in scores and (score := scores[previous] + gain) > scores[place]:
                scores[place], before[place] = score, previous
    if max(scores.values(), default=0) < LEAST_SCORE:
        return []
    chain = [max(scores, key=lambda place: (scores[place], -place[0], -place[1]))]
    while (previous := before.get(chain[-1])) is not None:  # type: ignore[assignment]
        chain.append(previous)
    return chain[::-1]
