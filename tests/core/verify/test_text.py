"""Laws: the parts of a text are those of its words, in all languages, and however it was given; what goes to a cache or
to another process is compared as the text itself.
"""

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st
from neardup.core.fingerprint.compute import fingerprint
from neardup.core.fingerprint.word_hashes import hash_words
from neardup.core.languages import LANGUAGES
from neardup.core.text.normalize import tokenize
from neardup.core.verify.text import Text
from neardup.records import Language

from tests.support.builders import text_of_words
from tests.support.graphemes import GRAPHEME_PARTS
from tests.support.languages import TEXTS

COMPARED = ("normalised", "text_hash", "script", "nbytes")
ARRAYS = ("word_hashes", "shingles", "skeleton_hashes", "skeleton_grams", "passages")
pieces = [*GRAPHEME_PARTS, "ß", "\ud800", *(word for text in TEXTS.values() for word in text.split())]
texts = st.sampled_from(LANGUAGES).map(TEXTS.__getitem__) | st.lists(st.sampled_from(pieces)).map(" ".join)


def parts_of(text: Text) -> list[object]:
    return [*(getattr(text, name) for name in COMPARED), *(getattr(text, name).tolist() for name in ARRAYS)]


@given(texts)
def test_the_parts_are_those_of_the_words(written: str) -> None:
    text, words = Text(written), tokenize(written)
    assert (text.written, text.words, text.normalised) == (written, words, b" ".join(words))
    assert text.word_hashes.tolist() == hash_words(words).hashes.tolist()
    assert len(text.located.starts) == len(words)
    if not words:
        with pytest.raises(ValueError, match="without words"):
            _ = text.fingerprint
        return
    made = fingerprint(words)
    assert text.fingerprint == made
    assert (text.text_hash, len(text.shingles), text.passages.tobytes()) == (
        made.text_hash,
        made.shingles,
        made.passages,
    )


@given(texts)
def test_a_text_is_compared_alike_however_it_was_given(written: str) -> None:
    text = Text(written)
    expected = parts_of(text)
    for other in (
        text_of_words(tokenize(written)),
        text.keep_compared(),
        pickle.loads(pickle.dumps(text.keep_compared())),
    ):
        assert parts_of(other) == expected
    if "\ud800" not in written:
        assert parts_of(Text(written.encode())) == expected


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_part_that_was_made_goes_along_to_another_process(language: Language) -> None:
    text = pickle.loads(pickle.dumps(Text(TEXTS[language]).prepare()))
    assert {"fingerprint", "hashed", "shingles"} <= vars(text).keys(), "a check makes them again"
    assert "located" not in vars(text)
    compared = pickle.loads(pickle.dumps(Text(TEXTS[language]).keep_compared()))
    assert compared.given is compared.normalised, "the text goes along twice"
