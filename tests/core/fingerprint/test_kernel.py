"""Law: for every text the compiled road gives the fingerprint that the plain reading gives, bit for bit, and it is
taken for nearly all of them.
"""

import subprocess
import sys
import unicodedata
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import xxhash
from hypothesis import given, settings
from hypothesis import strategies as st
from neardup.core.fingerprint.compute import PERMUTATIONS, WEIGHTS, compiled_road, fingerprint, fingerprint_text
from neardup.core.fingerprint.kernel import normalise
from neardup.core.fingerprint.xxh3 import LONGEST, U64, xxh3_128
from neardup.core.jit import compiled
from neardup.core.text.codepoints import CHILLU, DOUBTFUL, TABLE_END, entries, joining
from neardup.core.text.html import Extraction, visible_text
from neardup.core.text.normalize import codes_of
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

stretched = st.tuples(in_one_script, st.integers(1, 300)).map(lambda drawn: drawn[0] * drawn[1])  # long words, often


def plainly(text: str) -> Fingerprint | None:
    words = normalised_in_full(text)
    return fingerprint(words) if words else None


def is_compiled(text: str) -> bool:
    read = compiled_road()
    assert read is not None, "nothing may be compiled here"
    return read(codes_of(text), entries(), joining(), WEIGHTS, PERMUTATIONS)[0] >= 0


@thorough
@given(st.one_of(in_one_script, hostile, stretched))
def test_both_roads_lead_to_the_same_fingerprint(text: str) -> None:
    assert fingerprint_text(text) == plainly(text)


@every_language
def test_the_compiled_road_is_taken_for_every_letter_of_the_language(language: Language) -> None:
    """Accents and what casefolds to several letters apart."""
    block = [chr(code) for code in BLOCKS[language]]
    doubtful = {c for c in block if entries()[ord(c)] & DOUBTFUL}
    assert all(unicodedata.combining(c) or len(c.casefold()) > 1 for c in doubtful)
    text = " ".join(c for c in block if c not in doubtful)
    assert is_compiled(text)
    assert fingerprint_text(text) == plainly(text)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: f"{page.parent.name}-{page.stem}")
def test_the_compiled_road_is_taken_for_real_stories(page: Path) -> None:
    text = visible_text(page.read_text(encoding="utf-8"), Extraction("article .story, div.post-body"))
    assert is_compiled(text)
    assert fingerprint_text(text) == plainly(text)


def normal_form(text: str) -> bytes:
    """By the compiled road, which must be open."""
    room, ends = np.empty(4 * len(text) + 1, np.uint8), np.empty(len(text) // 2 + 1, np.uint64)
    words = normalise(codes_of(text), entries(), joining(), room, ends)
    assert words > 0, "not settled"
    return room[: ends[words - 1]].tobytes()


def test_every_settled_code_point_is_normalised_as_the_definition_says() -> None:
    settled = [chr(code) for code in np.flatnonzero(entries() & DOUBTFUL == 0).tolist()]
    assert len(settled) > TABLE_END - 3000
    text = " ".join(f"क{c}ा{c} {c}ക" for c in [*settled, "\U0010ffff"])
    assert normal_form(text) == b" ".join(normalised_in_full(text))


@pytest.mark.parametrize("between", ["", "\u200d", "\u093c", "\u094d", "\u0d4d", " ", "क"])
def test_every_pair_that_might_join_is_normalised_as_the_definition_says(between: str) -> None:
    told = [first + between + second for first, second in product(FLAGGED, FLAGGED)]
    text = " ".join(told) + "".join(told)
    assert normal_form(text) == b" ".join(normalised_in_full(text))


@pytest.mark.parametrize("letter", CHILLU)
@pytest.mark.parametrize("virama", ["\u0d4d", "\u0d4d\u0d3c", "\u093c\u0d4d", "\u0d4d\u093c", "\u0d4d\u200c", "\u094d"])
def test_a_chillu_is_what_the_definition_says(letter: str, virama: str) -> None:
    text = f"അ{letter}{virama}\u200d ക{virama}\u200dാ {virama}\u200d {letter}{virama}\u200d"
    assert fingerprint_text(text) == plainly(text)


@pytest.mark.parametrize("nothing", ["", " ", "\u200d", "\u200d\u200d \u00ad", "\ud800", "।", "\u093c", "\0"])
def test_no_words_have_no_fingerprint(nothing: str) -> None:
    assert fingerprint_text(nothing) is None


@pytest.mark.parametrize("size", [1, LONGEST, LONGEST + 1, 5000])
def test_a_word_of_any_length_counts(size: int) -> None:
    text = "a" * size
    assert is_compiled(text) == (size <= LONGEST)
    assert fingerprint_text(text) == plainly(text)
    assert fingerprint_text(f"क {text} ख {text}") == plainly(f"क {text} ख {text}")


@pytest.mark.parametrize("times", [1, 2, len(WEIGHTS) - 1, len(WEIGHTS), 3 * len(WEIGHTS)])
def test_a_word_told_any_number_of_times_counts(times: int) -> None:
    text = "कहानी " * times + "एक थी"
    assert is_compiled(text) == (times < len(WEIGHTS))
    assert fingerprint_text(text) == plainly(text)


@pytest.mark.parametrize("words", [1, 2, 19, 20, 21, 22, 100_000])
def test_a_story_of_any_length_has_its_fingerprint(words: int) -> None:
    text = " ".join(f"शब्द{n}" for n in range(words))
    assert fingerprint_text(text) == plainly(text)
    assert fingerprint_text(f"{text} {text}") == plainly(f"{text} {text}")


def test_threads_do_not_mix_their_stories_up() -> None:
    told = [f"{text} {n} " * n for text in TEXTS.values() for n in range(1, 40)]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(fingerprint_text, told)) == [plainly(text) for text in told]


@given(st.binary(min_size=1, max_size=LONGEST), st.binary(max_size=9), st.binary(max_size=9))
@settings(deadline=None)
def test_xxh3_is_what_the_package_gives(word: bytes, before: bytes, behind: bytes) -> None:
    low, high = xxh3_128(np.frombuffer(before + word + behind, np.uint8), U64(len(before)), U64(len(word)))
    assert int(high) << 64 | int(low) == xxhash.xxh3_128_intdigest(word)


@pytest.mark.parametrize("filling", [0, 1, 255])
def test_xxh3_is_what_the_package_gives_at_every_length(filling: int) -> None:
    data = np.full(LONGEST, filling, np.uint8)
    for size in range(1, LONGEST + 1):
        low, high = xxh3_128(data, U64(0), U64(size))
        assert int(high) << 64 | int(low) == xxhash.xxh3_128_intdigest(data[:size].tobytes()), f"{size} bytes"


def test_a_function_that_cannot_be_cached_is_compiled_all_the_same() -> None:
    made: dict[str, object] = {}
    exec("def twice(x):\n    return 2 * x", made)  # of no file, so of no cache
    twice = made["twice"]
    assert callable(twice)
    assert compiled(twice)(21) == 42


def run(program: str) -> str:
    done = subprocess.run([sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, check=False)
    assert not done.stderr
    return done.stdout.strip()


def test_who_makes_no_fingerprint_imports_no_compiler() -> None:
    assert (
        run(
            "import sys; from neardup.core.fingerprint.version import version; version(); print('numba' in sys.modules)"
        )
        == "False"
    )


@pytest.mark.skipif(
    bool(
        subprocess.run(
            [sys.executable, "-c", f"import ctypes; exit(ctypes.CDLL(None).prctl(*{MDWE}))"], check=False
        ).returncode
    ),
    reason="this kernel cannot forbid executable memory",
)
def test_where_memory_may_not_be_made_executable_stories_are_read_plainly() -> None:
    program = f"""
import ctypes
assert ctypes.CDLL(None).prctl(*{MDWE}) == 0
from neardup.core.fingerprint.version import warm_up
from tests.support.languages import TEXTS
from neardup.core.fingerprint.compute import fingerprint_text
print(warm_up(), [fingerprint_text(text) for text in TEXTS.values()])
"""
    assert run(program) == f"False {[plainly(text) for text in TEXTS.values()]}"


@every_language
def test_both_implementations_agree_on_golden_texts_and_nuktas(language: Language) -> None:
    marked = " ".join(f"{letter}{nukta}" for letter in letters[language] for nukta in sorted(NUKTAS))
    for text in (TEXTS[language], unicodedata.normalize("NFD", TEXTS[language]), marked):
        assert fingerprint_text(text) == plainly(text), text
