"""The model in a folder: a tiny one that the test makes, whose tokens have known vectors."""

from pathlib import Path

import numpy as np
import pytest
from neardup.errors import Misuse
from neardup.meaning.embedders import open_folder

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
