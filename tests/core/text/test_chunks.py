"""The chunks of a story: the first words of it, in their order."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from neardup.core.text.chunks import CHUNK_WORDS, LEAST_WORDS, MOST_CHARACTERS, MOST_CHUNKS, cut_chunks
from neardup.records import Language

from tests.support.languages import SAMPLED
from tests.support.sample_texts import story

numbered = st.integers(0, 1_000).map(lambda n: [f"word{i}" for i in range(n)])


@given(numbered, st.sampled_from([" ", "\n", "  \t"]))
def test_chunks_are_the_first_words_in_their_order(words: list[str], space: str) -> None:
    found = cut_chunks(space.join(words))
    taken = " ".join(found).split()
    assert taken == words[: len(taken)]
    assert len(found) <= MOST_CHUNKS
    assert all(len(chunk.split()) == CHUNK_WORDS for chunk in found[:-1]), "only the last chunk is shorter"
    assert len(taken) > min(len(words), MOST_CHUNKS * CHUNK_WORDS) - LEAST_WORDS, "only a short rest is left out"


@given(numbered.filter(len))
def test_a_text_with_words_has_a_chunk(words: list[str]) -> None:
    assert cut_chunks(" ".join(words))[0]


@pytest.mark.parametrize("language", SAMPLED)
def test_chunks_are_whole_words_in_every_language(language: Language) -> None:
    text = story(language)
    found = cut_chunks(text)
    assert found
    assert set(" ".join(found).split()) <= set(text.split())


def test_a_text_without_spaces_has_a_chunk_of_bounded_size() -> None:
    assert [len(chunk) for chunk in cut_chunks("क" * 1_000_000)] == [MOST_CHARACTERS]


def test_a_text_without_words_has_no_chunks() -> None:
    assert cut_chunks(" \n\t ") == []
