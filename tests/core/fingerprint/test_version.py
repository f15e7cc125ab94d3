"""Law: the version of the fingerprints is pinned, and changes with anything that changes a fingerprint.

A change that concerns one language changes the digest of that language only.
"""

import unicodedata
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from neardup.core.fingerprint import minhash, version, word_hashes
from neardup.core.fingerprint.compute import fingerprint
from neardup.core.languages import LANGUAGES, PINNED
from neardup.core.text import codepoints, normalize
from neardup.records import Language

from tests.support.languages import ENGLISH, KANNADA, TEXTS

uncached_digest = version.compute_digest
OTHER_DIGEST = "0" * 16


def current_digests() -> dict[Language, str]:
    return {language: uncached_digest(golden) for language, golden in TEXTS.items()}


@pytest.fixture
def without_native_core(monkeypatch: pytest.MonkeyPatch) -> None:
    """The digests are those of the reference, whose parts a test can change."""
    monkeypatch.setattr(version, "LIBRARY", None)


def test_the_reference_has_the_pinned_digests_too(without_native_core: None) -> None:
    assert current_digests() == PINNED, "the digest of a language"
    assert version.digest_of_algorithm() == version.PINNED_ALGORITHM


def test_algorithm_and_languages_have_their_pinned_digests() -> None:
    assert version.list_changed() == []
    assert current_digests() == PINNED, "the digest of a language"
    assert version.algorithm() == version.digest_of_algorithm() == version.PINNED_ALGORITHM
    assert {language: version.digest_of(golden) for language, golden in TEXTS.items()} == PINNED
    assert version.version().split() == [version.PINNED_ALGORITHM, *(f"{n}={d}" for n, d in PINNED.items())]


@pytest.mark.parametrize(
    ("module", "name", "value"),
    [
        (word_hashes, "SCALE", 1),
        (word_hashes, "np", SimpleNamespace(**vars(np) | {"log": np.log2})),
        (word_hashes, "np", SimpleNamespace(**vars(np) | {"log": lambda frequencies: frequencies - 1})),
        (word_hashes, "OFFSETS", word_hashes.OFFSETS[::-1].copy()),
        (word_hashes, "SIGNS", -word_hashes.SIGNS),
        (minhash, "MULTIPLIERS", minhash.MULTIPLIERS[::-1].copy()),
        (minhash, "ADDENDS", minhash.ADDENDS + np.uint64(1)),
        (minhash, "MIN_SHINGLES", 30),
        (minhash, "mix", lambda hashes: hashes),
        (normalize, "CHILLU", {**codepoints.CHILLU, "ൽ": "ല", "ല": "ൾ"}),
        (codepoints, "NUKTAS", "\u093c\u09bc\u0abc\u0b3c"),
        (codepoints, "IGNORABLE", (codepoints.IGNORABLE[0].lstrip("\u00ad"), *codepoints.IGNORABLE[1:])),
        (codepoints, "IGNORABLE", tuple(entry for entry in codepoints.IGNORABLE if entry != ("\u200b", "\u200f"))),
        (codepoints, "LETTERS_END", 0x0D66),
    ],
    ids=[
        *("whole weights", "weights of log2", "raw frequencies", "byte order", "signs"),
        *("permutations", "addends", "too few shingles", "no mixing"),
        *("chillu", "Gurmukhi nukta", "soft hyphen", "joiners", "letters end"),
    ],
)
def test_a_changed_constant_changes_a_digest(
    without_native_core: None, monkeypatch: pytest.MonkeyPatch, module: object, name: str, value: object
) -> None:
    monkeypatch.setattr(module, name, value)
    table = codepoints.build_table.__wrapped__()
    monkeypatch.setattr(normalize, "load_table", lambda: table)
    assert current_digests() != PINNED, f"{name} does not affect a digest"
    of_algorithm = module in {word_hashes, minhash}
    assert (version.digest_of_algorithm() != version.PINNED_ALGORITHM) is of_algorithm, (
        "the algorithm's digest must change with the algorithm only"
    )


def test_a_dropped_nukta_changes_only_languages_that_have_it(
    without_native_core: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(codepoints, "NUKTAS", codepoints.NUKTAS.replace("\u0cbc", ""))
    table = codepoints.build_table.__wrapped__()
    monkeypatch.setattr(normalize, "load_table", lambda: table)
    assert {n for n, digest in current_digests().items() if digest != PINNED[n]} == {KANNADA}


names = st.sampled_from(["HINDI", "TAMIL", "SINHALA", "ENGLISH"])
digests = st.dictionaries(names, st.sampled_from(["a" * 16, "b" * 16]))


@given(digests, digests, st.sets(names))
def test_only_a_held_language_with_another_digest_differs(
    old: dict[str, str], new: dict[str, str], held: set[str]
) -> None:
    recorded, current = (
        " ".join(("f" * 16, *(f"{n}={d}" for n, d in by_language.items()))) for by_language in (old, new)
    )
    changed = {n for n in held & old.keys() & new.keys() if old[n] != new[n]}
    message = version.explain_difference(recorded, current, held)
    assert (message is not None) is bool(changed)
    assert message is None or any(name in message for name in changed), "the message names the language"


def test_another_algorithm_differs_whatever_languages_have_stories() -> None:
    message = version.explain_difference(f"{OTHER_DIGEST} HINDI=a", f"{version.algorithm()} HINDI=a", ())
    assert message == f"fingerprints of version {OTHER_DIGEST}, this program makes {version.algorithm()}"


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_golden_text_contains_the_difficult_parts_of_its_script(language: Language) -> None:
    golden = TEXTS[language]
    kinds = {unicodedata.category(c)[0] for c in golden}
    assert kinds >= ({"L", "P", "N"} if language is ENGLISH else {"L", "M", "P", "N"})
    words = normalize.tokenize(golden)
    assert words != golden.encode().split(), "normalisation changes nothing here"
    assert fingerprint(words + words[::-1] + words[::2] + words[::3]).signature, "too few shingles to pin the signature"


def test_a_native_core_with_wrong_fingerprints_is_refused(
    without_native_core: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    version.check_native_core()
    monkeypatch.setattr(version, "fingerprint_text", lambda text: replace(fingerprint(text.encode().split()), words=0))
    with pytest.raises(RuntimeError, match="install neardup again"):
        version.check_native_core()
