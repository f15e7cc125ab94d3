"""The table of code points leaves out only what has nothing to normalise, and its file has what is computed."""

import unicodedata
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pytest
from neardup.core.text import look_alikes, normalize
from neardup.core.text.codepoints import UNCASED


def test_ideographs_hangul_and_private_use_have_nothing_to_normalise() -> None:
    for code in (code for uncased in UNCASED for code in uncased):
        character = chr(code)
        has_case = unicodedata.category(character)[0] in "LMN" and character.casefold() != character
        assert not has_case, f"U+{code:04X} has case"
        assert not unicodedata.combining(character), f"U+{code:04X} combines"
        assert not unicodedata.decomposition(character), f"U+{code:04X} has a decomposition"


def test_the_file_has_the_tables_that_are_computed() -> None:
    arrays: Iterable[tuple[Any, Any]] = zip(normalize.load_tables(), normalize.compute_tables(), strict=True)
    for kept, computed in arrays:
        np.testing.assert_array_equal(kept, computed, "run `python -m neardup.core.text.normalize`", strict=True)
    assert normalize.load_forms() == look_alikes.map_forms(), "run `python -m neardup.core.text.normalize`"


def test_under_another_version_of_unicode_the_tables_are_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(normalize, "compute_tables", lambda: "computed")
    read: Callable[[], object] = normalize.load_tables.__wrapped__
    assert read() != "computed"
    monkeypatch.setattr(unicodedata, "unidata_version", "99.0.0")
    assert read() == "computed"
