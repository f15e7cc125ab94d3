"""Laws of the library's functions: a text copies itself, `compare` is symmetric, and errors name their cause."""

import subprocess
import sys

import neardup
import pytest
from neardup.core.fingerprint.compute import fingerprint_text
from neardup.core.verify.tiers import EXACT, PARTIAL
from neardup.records import Language

from tests.support.languages import CODES, TEXTS


@pytest.mark.parametrize(("language", "code"), CODES.items())
def test_a_text_is_an_exact_copy_of_itself(language: Language, code: str) -> None:
    comparison = neardup.compare(TEXTS[language], TEXTS[language].upper(), language=code)
    assert (comparison.language, comparison.kind) == (language, EXACT)
    assert (comparison.jaccard, comparison.hamming) == (1.0, 0)
    assert neardup.fingerprint(TEXTS[language], language=code) == fingerprint_text(TEXTS[language])


def test_exchanging_the_texts_exchanges_the_containments() -> None:
    words = [f"w{n}" for n in range(60)]
    part, whole = " ".join(words[:30]), " ".join(words)
    first, second = neardup.compare(part, whole, "en"), neardup.compare(whole, part, "ENGLISH")
    assert (first.kind, first.containment_a, first.longest_run_words) == (PARTIAL, 1.0, 30)
    assert first.copied_words == 30
    assert (first.containment_a, first.containment_b) == (second.containment_b, second.containment_a)
    assert (first.kind, first.jaccard, first.hamming) == (second.kind, second.jaccard, second.hamming)
    assert str(first).startswith("partial: similarity 1.00, Jaccard 0.49, containment 1.00 of a in b")


def test_unrelated_texts_are_no_copy() -> None:
    comparison = neardup.compare("one two three four", "five six seven eight", "en")
    assert (comparison.kind, comparison.jaccard) == (None, 0.0)
    assert str(comparison).startswith("no copy: ")


@pytest.mark.parametrize(
    ("texts", "language", "why"),
    [(("a b", "c"), "xx", "unknown language 'xx'.*Hindi"), (("a b", "."), "hi", "text_b has no words")],
)
def test_errors_name_the_language_or_text(texts: tuple[str, str], language: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        neardup.compare(*texts, language=language)
    if language == "xx":
        with pytest.raises(ValueError, match=why):
            neardup.fingerprint(texts[0], language)


def test_importing_the_package_loads_nothing_else() -> None:
    program = "import sys, neardup; print(*(name for name in sys.modules if name.startswith(('numpy', 'neardup.'))))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [], "every command would start more slowly"
