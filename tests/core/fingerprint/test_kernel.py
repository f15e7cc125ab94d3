"""Law: for every text the compiled kernel gives the same fingerprint as the plain implementation, and it supports
nearly all texts.
"""

import pickle
import subprocess
import sys
import unicodedata
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import xxhash
from hypothesis import example, given, settings
from hypothesis import strategies as st
from neardup.core.fingerprint.compute import PERMUTATIONS, WEIGHTS, fingerprint, fingerprint_text, hashed_text
from neardup.core.fingerprint.kernel import fingerprint_story
from neardup.core.fingerprint.passage_hashes import WINDOW
from neardup.core.fingerprint.word_hashes import hashed
from neardup.core.fingerprint.xxh3 import LONGEST, U64, xxh3_128
from neardup.core.jit import compiled
from neardup.core.text.codepoints import BEYOND_TABLE, CHILLU, COMBINING, LONE_MARK, NUKTA, TABLE_END
from neardup.core.text.extraction import Extraction
from neardup.core.text.html import visible_text
from neardup.core.text.look_alikes import disguises, foreign
from neardup.core.text.normalize import codes_of
from neardup.core.text.normalize_kernel import normalise
from neardup.core.text.tables import flagged_table, tables
from neardup.records import Fingerprint, Language

from tests.core.text.test_normalize import (
    BLOCKS,
    FLAGGED,
    NUKTAS,
    PAGES,
    every_language,
    hostile,
    in_one_script,
    letters,
    normalised_in_full,
    thorough,
)
from tests.support.languages import TEXTS

MDWE = (65, 1, 0, 0, 0)  # PR_SET_MDWE, PR_MDWE_REFUSE_EXEC_GAIN: what systemd's MemoryDenyWriteExecute asks for

LONE_MARKS = [chr(code) for code in np.flatnonzero(flagged_table() & LONE_MARK).tolist()]
COMPOSING = [character for character in FLAGGED if not flagged_table()[ord(character)] & COMBINING]
LETTERS_WITH_MARKS = "aकكاويہےەెか"

stretched = st.tuples(in_one_script, st.integers(1, 300)).map(lambda drawn: drawn[0] * drawn[1])  # often long words

marked = st.text(st.sampled_from([*LETTERS_WITH_MARKS, *LONE_MARKS, *" \u094d\u0dca\u093c\u200d\u0301@1"]))
look_alikes = st.text(
    st.one_of(
        st.sampled_from("aeо0１145278@$ \u200b\u200e\u0336é×कଓ"),
        st.sampled_from("хοнднеηՀἀꓮᏴꮃ𐐄𝛂ᴀⅼ"),
        st.sampled_from([*map(chr, foreign())]),
    ),
    max_size=16,
)


def plain_fingerprint(text: str) -> Fingerprint | None:
    words = normalised_in_full(text)
    return fingerprint(words) if words else None


def kernel_supports(text: str) -> bool:
    words: int = fingerprint_story(codes_of(text), tables(), WEIGHTS, PERMUTATIONS, WINDOW)[0]
    return words >= 0


@thorough
@given(st.one_of(in_one_script, hostile, stretched, marked))
def test_both_implementations_give_the_same_fingerprint(text: str) -> None:
    assert fingerprint_text(text) == plain_fingerprint(text)


@thorough
@given(st.one_of(in_one_script, hostile, stretched, marked, look_alikes))
@example("k\u03bd0")
def test_both_implementations_give_the_same_words(text: str) -> None:
    words, found = normalised_in_full(text), hashed_text(text)
    assert (found is None) == (not words)
    if found is not None:
        assert found[0] == b" ".join(words)
        assert found[1].tolist() == hashed(words).hashes.tolist()


@every_language
def test_the_kernel_supports_every_letter_of_the_language(language: Language) -> None:
    """Except combining marks, letters that casefold to several code points, and those that look like others."""
    block = [chr(code) for code in BLOCKS[language]]
    beyond_table = {c for c in block if flagged_table()[ord(c)] & BEYOND_TABLE}
    disguised = {*disguises(), *foreign()}
    assert all(
        unicodedata.combining(c) or len(c.casefold()) > 1 or disguised.intersection(map(ord, c + c.casefold()))
        for c in beyond_table
    )
    text = " ".join(c for c in block if c not in beyond_table)
    assert kernel_supports(text)
    assert fingerprint_text(text) == plain_fingerprint(text)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: f"{page.parent.name}-{page.stem}")
def test_the_kernel_supports_real_stories(page: Path) -> None:
    text = visible_text(page.read_text(encoding="utf-8"), Extraction("article .story, div.post-body"))
    assert kernel_supports(text)
    assert fingerprint_text(text) == plain_fingerprint(text)


def normal_form(text: str) -> bytes:
    """The normalised text by the kernel, which must support it."""
    buffer, ends = np.empty(4 * len(text) + 1, np.uint8), np.empty(len(text) // 2 + 1, np.uint64)
    words = normalise(codes_of(text), tables(), buffer, ends)
    assert words > 0, "the kernel does not support the text"
    return buffer[: ends[words - 1]].tobytes()


def test_the_kernel_normalises_every_supported_code_point() -> None:
    supported = [chr(code) for code in np.flatnonzero(flagged_table() & BEYOND_TABLE == 0).tolist()]
    assert len(supported) > TABLE_END - 4000
    text = " ".join(f"क{c}ा{c} {c}ക" for c in [*supported, "\U0010ffff"])
    assert normal_form(text) == b" ".join(normalised_in_full(text))


@pytest.mark.parametrize("between", ["", "\u200d", "\u093c", "\u094d", "\u0d4d", " ", "क"])
def test_the_kernel_normalises_every_pair_that_might_compose(between: str) -> None:
    seconds = [second for second in COMPOSING if ord(second) != NUKTA or between not in ("\u094d", "\u0d4d")]
    pairs = [first + between + second for first, second in product(COMPOSING, seconds)]
    text = " ".join(pairs) + "".join(pairs)
    assert normal_form(text) == b" ".join(normalised_in_full(text))


@pytest.mark.parametrize("between", ["", "\u200d", "\u093c", " "])
def test_the_kernel_normalises_every_mark_beside_which_no_other_stands(between: str) -> None:
    marked = [letter + between + mark for letter, mark in product(LETTERS_WITH_MARKS, LONE_MARKS)]
    text = " ".join(marked) + "".join(marked)
    assert normal_form(text) == b" ".join(normalised_in_full(text))


@pytest.mark.parametrize("letter", CHILLU)
@pytest.mark.parametrize("virama", ["\u0d4d", "\u0d4d\u0d3c", "\u093c\u0d4d", "\u0d4d\u093c", "\u0d4d\u200c", "\u094d"])
def test_both_implementations_agree_on_chillu_sequences(letter: str, virama: str) -> None:
    text = f"അ{letter}{virama}\u200d ക{virama}\u200dാ {virama}\u200d {letter}{virama}\u200d"
    assert fingerprint_text(text) == plain_fingerprint(text)


@pytest.mark.parametrize("nothing", ["", " ", "\u200d", "\u200d\u200d \u00ad", "\ud800", "।", "\u093c", "\0"])
def test_a_text_without_words_has_no_fingerprint(nothing: str) -> None:
    assert fingerprint_text(nothing) is None


@pytest.mark.parametrize("size", [1, LONGEST, LONGEST + 1, 5000])
def test_both_implementations_agree_on_words_of_any_length(size: int) -> None:
    text = "a" * size
    assert kernel_supports(text) == (size <= LONGEST)
    assert fingerprint_text(text) == plain_fingerprint(text)
    assert fingerprint_text(f"क {text} ख {text}") == plain_fingerprint(f"क {text} ख {text}")


@pytest.mark.parametrize("times", [1, 2, len(WEIGHTS) - 1, len(WEIGHTS)])
def test_both_implementations_agree_on_words_of_any_frequency(times: int) -> None:
    text = "कहानी " * times + "एक थी"
    assert kernel_supports(text) == (times < len(WEIGHTS))
    assert fingerprint_text(text) == plain_fingerprint(text)


@pytest.mark.parametrize("words", [1, 2, 19, 20, 21, 22, 100_000])
def test_both_implementations_agree_on_stories_of_any_length(words: int) -> None:
    text = " ".join(f"शब्द{n}" for n in range(words))
    assert fingerprint_text(text) == plain_fingerprint(text)
    assert fingerprint_text(f"{text} {text}") == plain_fingerprint(f"{text} {text}")


def test_concurrent_threads_get_the_right_fingerprints() -> None:
    texts = [f"{text} {n} " * n for text in TEXTS.values() for n in range(1, 40)]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(fingerprint_text, texts)) == [plain_fingerprint(text) for text in texts]


@given(st.binary(min_size=1, max_size=LONGEST), st.binary(max_size=9), st.binary(max_size=9))
@settings(deadline=None)
def test_xxh3_matches_the_package(word: bytes, before: bytes, behind: bytes) -> None:
    low, high = xxh3_128(np.frombuffer(before + word + behind, np.uint8), U64(len(before)), U64(len(word)))
    assert int(high) << 64 | int(low) == xxhash.xxh3_128_intdigest(word)


@pytest.mark.parametrize("filling", [0, 1, 255])
def test_xxh3_matches_the_package_at_every_length(filling: int) -> None:
    data = np.full(LONGEST, filling, np.uint8)
    for size in range(1, LONGEST + 1):
        low, high = xxh3_128(data, U64(0), U64(size))
        assert int(high) << 64 | int(low) == xxhash.xxh3_128_intdigest(data[:size].tobytes()), f"{size} bytes"


def test_a_function_that_cannot_be_cached_is_compiled() -> None:
    namespace: dict[str, object] = {}
    exec("def twice(x):\n    return 2 * x", namespace)  # it has no file, so numba cannot cache it
    twice = namespace["twice"]
    assert callable(twice)
    assert compiled(twice)(21) == 42


def test_a_compiled_function_is_pickled_by_its_name() -> None:
    assert fingerprint_text("a b")
    assert pickle.loads(pickle.dumps(fingerprint_story)) is fingerprint_story


def run(program: str) -> str:
    done = subprocess.run([sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, check=False)
    assert not done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize(
    "program",
    ["from neardup.core.fingerprint.version import version; version()", "import neardup.core.warm_up"],
    ids=["version", "import"],
)
def test_numba_is_imported_only_to_fingerprint_a_text(program: str) -> None:
    assert run(f"import sys; {program}; print('numba' in sys.modules)") == "False", "it takes 0.2 s and 115 MB"


@pytest.mark.skipif(
    bool(
        subprocess.run(
            [sys.executable, "-c", f"import ctypes; exit(ctypes.CDLL(None).prctl(*{MDWE}))"], check=False
        ).returncode
    ),
    reason="this kernel cannot forbid executable memory",
)
def test_the_plain_implementation_is_used_without_executable_memory() -> None:
    program = f"""
import ctypes
assert ctypes.CDLL(None).prctl(*{MDWE}) == 0
from neardup.core.fingerprint.version import warm_up
from tests.support.languages import TEXTS
from neardup.core.fingerprint.compute import fingerprint_text
print(warm_up(), [fingerprint_text(text) for text in TEXTS.values()])
"""
    assert run(program) == f"False {[plain_fingerprint(text) for text in TEXTS.values()]}"


@every_language
def test_both_implementations_agree_on_golden_texts_and_nuktas(language: Language) -> None:
    marked = " ".join(f"{letter}{nukta}" for letter in letters[language] for nukta in sorted(NUKTAS))
    for text in (TEXTS[language], unicodedata.normalize("NFD", TEXTS[language]), marked):
        assert fingerprint_text(text) == plain_fingerprint(text), text
