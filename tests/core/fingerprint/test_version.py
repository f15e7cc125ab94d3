"""Law: the version of the fingerprints is pinned, and changes with anything that changes a fingerprint."""

import unicodedata
from types import SimpleNamespace

import numpy as np
import pytest
from neardup.core.fingerprint import compute as road
from neardup.core.fingerprint import minhash, permutations, simhash
from neardup.core.fingerprint import version as fingerprint_version
from neardup.core.fingerprint.compute import fingerprint
from neardup.core.text import codepoints, normalize
from neardup.records import Language

here_and_now = fingerprint_version.version.__wrapped__


def test_the_version_is_the_pinned_one_each_time() -> None:
    assert fingerprint_version.version() == here_and_now() == here_and_now() == fingerprint_version.PINNED
    assert len(fingerprint_version.PINNED) == 16
    assert int(fingerprint_version.PINNED, 16) >= 0


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
def test_a_changed_constant_changes_the_version(
    monkeypatch: pytest.MonkeyPatch, module: object, name: str, value: object
) -> None:
    monkeypatch.setattr(module, name, value)
    table = codepoints.table.__wrapped__()
    monkeypatch.setattr(normalize, "table", lambda: table)
    assert here_and_now() != fingerprint_version.PINNED, f"{name} does not count"


@pytest.mark.parametrize("language", Language)
def test_each_language_counts(monkeypatch: pytest.MonkeyPatch, language: Language) -> None:
    monkeypatch.setattr(
        fingerprint_version, "TEXTS", {n: t for n, t in fingerprint_version.TEXTS.items() if n != language}
    )
    assert here_and_now() != fingerprint_version.PINNED


@pytest.mark.parametrize("language", Language)
def test_a_golden_text_holds_what_its_script_makes_difficult(language: Language) -> None:
    told = fingerprint_version.TEXTS[language]
    kinds = {unicodedata.category(c)[0] for c in told}
    assert kinds >= ({"L", "P", "N"} if language is Language.ENGLISH else {"L", "M", "P", "N"})
    words = normalize.tokens(told)
    assert words != told.encode().split(), "normalisation changes nothing here"
    assert fingerprint(words + words[::-1] + words[::2] + words[::3]).signature, "too few shingles to pin the signature"


def test_a_compiled_road_that_leads_elsewhere_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    assert fingerprint_version.warm_up() is True
    monkeypatch.setattr(road, "PERMUTATIONS", (permutations.MULTIPLIERS, permutations.ADDENDS + np.uint64(1)))
    with pytest.raises(RuntimeError, match="cache"):
        fingerprint_version.warm_up()


def test_where_nothing_may_be_compiled_the_plain_road_is_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(road, "compiled_road", lambda: None)
    monkeypatch.setattr(fingerprint_version, "compiled_road", lambda: None)
    assert fingerprint_version.warm_up() is False
