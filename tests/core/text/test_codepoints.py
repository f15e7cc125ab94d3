"""The table of code points leaves out only what has nothing to normalise."""

import unicodedata

from neardup.core.text.codepoints import UNCASED


def test_ideographs_hangul_and_private_use_have_nothing_to_normalise() -> None:
    for code in (code for uncased in UNCASED for code in uncased):
        character = chr(code)
        has_case = unicodedata.category(character)[0] in "LMN" and character.casefold() != character
        assert not has_case, f"U+{code:04X} has case"
        assert not unicodedata.combining(character), f"U+{code:04X} combines"
        assert not unicodedata.decomposition(character), f"U+{code:04X} has a decomposition"
