"""Texts that are given as their words."""

from collections.abc import Sequence

from neardup.core.verify.text import Text


def text_of_words(words: Sequence[bytes]) -> Text:
    """The text with these normalised words."""
    return Text(b" ".join(words), is_normalised=True)
