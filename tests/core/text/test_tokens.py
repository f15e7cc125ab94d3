"""Examples of tokens: golden texts, marks, numbers, punctuation, chillu letters and nuktas."""

import unicodedata

import pytest
from neardup.core.text.codepoints import LIKE_LETTERS
from neardup.core.text.normalize import tokenize
from neardup.records import Language

from tests.core.text.test_normalize import (
    CHILLU,
    COMPOSED,
    JOINERS,
    NUKTAS,
    VIRAMA,
    ZWJ,
    every_language,
    joined,
    letters,
)
from tests.support.languages import ENGLISH, TEXTS, URDU

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


def test_a_digit_is_read_as_the_letter_that_it_looks_like() -> None:
    words = {
        "\u0be7": "அ\u0be7ம்",
        "\u0ae8": "ઘ\u0ae8માં",
        "\u0b66": "କା\u0b66",
        "\u0c66": "వ\u0c66శ",
        "\u0ce6": "ಹ\u0ce6ಸ",
    }
    for digit, word in words.items():
        assert tokenize(word) == tokenize(word.replace(digit, LIKE_LETTERS[digit])), word


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


@pytest.mark.parametrize("nukta", sorted(NUKTAS), ids=unicodedata.name)
def test_a_nukta_sign_is_dropped(nukta: str) -> None:
    letter, sign = chr(ord(nukta) - 0x27), chr(ord(nukta) + 2)  # the code points of KA and AA in each script
    assert tokenize(f"{letter}{nukta}{sign}") == tokenize(f"{letter}{sign}") == [f"{letter}{sign}".encode()]


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
