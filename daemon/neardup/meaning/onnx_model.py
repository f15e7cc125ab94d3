"""A model for ONNX Runtime, such as one in a folder, as exports leave it: `model.onnx` and `tokenizer.json`.

The vector of a text is the mean of the vectors of its tokens, or the model's own `sentence_embedding`.
"""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from neardup.errors import Misuse
from neardup.extras import needs
from neardup.meaning.centring import Vectors
from neardup.meaning.embedders import checked

if TYPE_CHECKING:
    from onnxruntime import InferenceSession
    from tokenizers import Tokenizer

MOST_TOKENS = 512
SENTENCE = "sentence_embedding"
WHAT = "meaning.folder"
ONLY_ERRORS = 3  # warnings would be lines on stderr that are no log lines


class OnnxModel:
    """The embedder of a model; `prepared` makes of a text what its tokenizer takes."""

    def __init__(
        self, name: str, session: "InferenceSession", tokenizer: "Tokenizer", prepared: Callable[[str], str]
    ) -> None:
        self.model = name
        self._prepared = prepared
        self._tokenizer = tokenizer
        self._tokenizer.enable_truncation(MOST_TOKENS)
        self._session = session
        self._inputs = {one.name for one in self._session.get_inputs()}
        self._has_sentence = SENTENCE in {one.name for one in self._session.get_outputs()}

    async def embed(self, texts: Sequence[str]) -> Vectors:
        return await asyncio.to_thread(self._embed, texts)

    def _embed(self, texts: Sequence[str]) -> Vectors:
        """One text at a time: of several, the shorter ones would be padded, and numbers leave the nearest cache."""
        encoded = self._tokenizer.encode_batch([self._prepared(_encodable(text)) for text in texts])
        return checked(np.array([self._vector(one.ids) for one in encoded], np.float32), len(texts), WHAT)

    def _vector(self, ids: Sequence[int]) -> Vectors:
        tokens = np.array([ids], np.int64)
        given = {
            "input_ids": tokens,
            "attention_mask": np.ones_like(tokens),
            "token_type_ids": np.zeros_like(tokens),
        }
        feed: Any = {name: value for name, value in given.items() if name in self._inputs}
        found = np.asarray(self._session.run([SENTENCE] if self._has_sentence else None, feed)[0], np.float32)[0]
        vector: Vectors = found if self._has_sentence else found.mean(axis=0)
        return vector


def open_folder(folder: Path, prefix: str = "") -> OnnxModel:
    """Load the model in a folder; `prefix` stands before each text, as models of the E5 family want it.

    Raises Misuse if the folder holds none, or the extra `onnx` is not installed.
    """
    with needs("onnx", '[meaning] kind = "onnx"'):
        from tokenizers import Tokenizer  # noqa: PLC0415 - an extra
    for name in ("model.onnx", "tokenizer.json"):
        if not (folder / name).is_file():
            raise Misuse(f"{WHAT}: there is no {name} in {folder}")
    try:
        tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        session = session_of(str(folder / "model.onnx"))
        return OnnxModel(folder.name, session, tokenizer, lambda text: prefix + text)
    except Misuse:
        raise
    except Exception as error:
        raise Misuse(f"{WHAT}: cannot load the model in {folder}: {' '.join(str(error).split())}") from error


def _encodable(text: str) -> str:
    """The text without what UTF-8 cannot hold."""
    return text.encode(errors="replace").decode()


def session_of(model: str | bytes) -> "InferenceSession":
    """Load a model, a file's path or its bytes.  Raises Misuse if the extra `onnx` is not installed."""
    with needs("onnx", "the model of [meaning]"):
        from onnxruntime import InferenceSession, SessionOptions  # noqa: PLC0415 - an extra
    options = SessionOptions()
    options.log_severity_level = ONLY_ERRORS
    options.intra_op_num_threads = 1  # the model must not take every core from the pipeline
    return InferenceSession(model, options, providers=["CPUExecutionProvider"])
