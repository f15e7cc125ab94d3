"""Law: the version of the fingerprints is pinned, and changes with anything that changes a fingerprint.

A change that concerns one language changes the digest of that language only.
"""

import unicodedata
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from neardup.core.fingerprint import compute as road
from neardup.core.fingerprint import minhash, permutations, simhash, version
from neardup.core.fingerprint.compute import fingerprint
from neardup.core.text import codepoints, normalize
from neardup.languages import LANGUAGES
from neardup.records import Language

from tests.support.languages import ENGLISH, KANNADA, TEXTS

digest_now = version.digest_of.__wrapped__
FRESH = "0" * 16


def digests_now() -> dict[Language, str]:
    return {language: digest_now(golden) for language, golden in TEXTS.items()}


def test_algorithm_and_languages_have_their_pinned_digests() -> None:
    assert version.unpinned() == []
    assert digests_now() == version.PINNED, "the digest of a language"
    assert version.algorithm() == version.algorithm.__wrapped__() == version.PINNED_ALGORITHM
    assert version.version().split() == [version.PINNED_ALGORITHM, *(f"{n}={d}" for n, d in version.PINNED.items())]


@pytest.mark.parametrize(
    ("module", "name", "value"),
    [
        (simhash, "SCALE", 1),
        (simhash, "np", SimpleNamespace(**vars(np) | {"log": np.log2})),
        (simhash, "np", SimpleNamespace(**vars(np) | {"log": lambda frequencies: frequencies - 1})),
        (simhash, "OFFSETS", simhash.OFFSETS[::-1].copy()),
        (simhash, "SIGNS", -simhash.SIGNS),
        (minhash, "MULTIPLIERS", permutations.MULTIPLIERS[::-1].copy()),
        (minhash, "ADDENDS", permutations.ADDENDS + np.uint64(1)),
        (minhash, "MIN_SHINGLES", 30),
        (minhash, "mixed", lambda hashes: hashes),
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
    monkeypatch: pytest.MonkeyPatch, module: object, name: str, value: object
) -> None:
    monkeypatch.setattr(module, name, value)
    table = codepoints.table.__wrapped__()
    monkeypatch.setattr(normalize, "table", lambda: table)
    assert digests_now() != version.PINNED, f"{name} does not count"
    of_algorithm = module in {simhash, minhash}
    assert (version.algorithm.__wrapped__() != version.PINNED_ALGORITHM) is of_algorithm, "what of the algorithm"


def test_a_dropped_nukta_changes_only_languages_that_have_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(codepoints, "NUKTAS", codepoints.NUKTAS.replace("\u0cbc", ""))
    table = codepoints.table.__wrapped__()
    monkeypatch.setattr(normalize, "table", lambda: table)
    assert {n for n, digest in digests_now().items() if digest != version.PINNED[n]} == {KANNADA}


names = st.sampled_from(["HINDI", "TAMIL", "SINHALA", "ENGLISH"])
digests = st.dictionaries(names, st.sampled_from(["a" * 16, "b" * 16]))


@given(digests, digests, st.sets(names))
def test_only_a_held_language_with_another_digest_differs(
    old: dict[str, str], new: dict[str, str], held: set[str]
) -> None:
    recorded, made = (" ".join(("f" * 16, *(f"{n}={d}" for n, d in one.items()))) for one in (old, new))
    changed = {n for n in held & old.keys() & new.keys() if old[n] != new[n]}
    why = version.difference(recorded, made, held)
    assert (why is not None) is bool(changed)
    assert why is None or any(name in why for name in changed), "the message names the language"


def test_another_algorithm_differs_whatever_is_held() -> None:
    why = version.difference(f"{FRESH} HINDI=a", f"{version.algorithm()} HINDI=a", ())
    assert why == f"fingerprints of version {FRESH}, this program makes {version.algorithm()}"


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_golden_text_holds_what_its_script_makes_difficult(language: Language) -> None:
    told = TEXTS[language]
    kinds = {unicodedata.category(c)[0] for c in told}
    assert kinds >= ({"L", "P", "N"} if language is ENGLISH else {"L", "M", "P", "N"})
    words = normalize.tokens(told)
    assert words != told.encode().split(), "normalisation changes nothing here"
    assert fingerprint(words + words[::-1] + words[::2] + words[::3]).signature, "too few shingles to pin the signature"


def test_a_compiled_road_that_leads_elsewhere_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    assert version.warm_up() is True
    monkeypatch.setattr(road, "PERMUTATIONS", (permutations.MULTIPLIERS, permutations.ADDENDS + np.uint64(1)))
    with pytest.raises(RuntimeError, match="cache"):
        version.warm_up()


def test_where_nothing_may_be_compiled_the_plain_road_is_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(road, "compiled_road", lambda: None)
    monkeypatch.setattr(version, "compiled_road", lambda: None)
    assert version.warm_up() is False
