"""Law: the version of the fingerprints is pinned, and changes with anything that changes a fingerprint."""

import unicodedata
from types import SimpleNamespace

import numpy as np
import pytest

from daemon.core import fingerprint as road
from daemon.core import golden, letters, minhash, permutations, simhash, text
from daemon.core.fingerprint import fingerprint
from daemon.records import Language

here_and_now = golden.version.__wrapped__


def test_the_version_is_the_pinned_one_each_time() -> None:
    assert golden.version() == here_and_now() == here_and_now() == golden.PINNED
    assert len(golden.PINNED) == 16
    assert int(golden.PINNED, 16) >= 0


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
        (text, "CHILLU", {**letters.CHILLU, "ൽ": "ല", "ല": "ൾ"}),
        (letters, "NUKTAS", "\u093c\u09bc\u0abc\u0b3c"),
        (letters, "IGNORABLE", (letters.IGNORABLE[0].lstrip("\u00ad"), *letters.IGNORABLE[1:])),
        (letters, "IGNORABLE", tuple(entry for entry in letters.IGNORABLE if entry != ("\u200b", "\u200f"))),
        (letters, "LETTERS_END", 0x0D66),
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
    table = letters.table.__wrapped__()
    monkeypatch.setattr(text, "table", lambda: table)
    assert here_and_now() != golden.PINNED, f"{name} does not count"


@pytest.mark.parametrize("language", Language)
def test_each_language_counts(monkeypatch: pytest.MonkeyPatch, language: Language) -> None:
    monkeypatch.setattr(golden, "TEXTS", {n: t for n, t in golden.TEXTS.items() if n != language})
    assert here_and_now() != golden.PINNED


@pytest.mark.parametrize("language", Language)
def test_a_golden_text_holds_what_its_script_makes_difficult(language: Language) -> None:
    told = golden.TEXTS[language]
    kinds = {unicodedata.category(c)[0] for c in told}
    assert kinds >= ({"L", "P", "N"} if language is Language.ENGLISH else {"L", "M", "P", "N"})
    words = text.tokens(told)
    assert words != told.encode().split(), "normalisation changes nothing here"
    assert fingerprint(words + words[::-1] + words[::2] + words[::3]).signature, "too few shingles to pin the signature"


def test_a_compiled_road_that_leads_elsewhere_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    assert golden.warm_up() is True
    monkeypatch.setattr(road, "PERMUTATIONS", (permutations.MULTIPLIERS, permutations.ADDENDS + np.uint64(1)))
    with pytest.raises(RuntimeError, match="cache"):
        golden.warm_up()


def test_where_nothing_may_be_compiled_the_plain_road_is_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(road, "compiled_road", lambda: None)
    monkeypatch.setattr(golden, "compiled_road", lambda: None)
    assert golden.warm_up() is False
