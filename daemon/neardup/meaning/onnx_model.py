"""A model in a folder, as exports to ONNX leave it: `model.onnx` and `tokenizer.json`.

The vector of a text is the mean of the vectors of its tokens, or the model's own `sentence_embedding`.
"""

import asyncio
from collections.abc import Sequence
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
    """The embedder; `prefix` stands before each text, as `passage: ` for models of the E5 family.

    Raises Misuse if the folder holds no such model, or the extra `onnx` is not installed.
    """

    def __init__(self, folder: Path, prefix: str = "") -> None:
        self.model = folder.name
        self._prefix = prefix
        self._tokenizer, self._session = _load(folder)
        self._inputs = {one.name for one in self._session.get_inputs()}
        self._has_sentence = SENTENCE in {one.name for one in self._session.get_outputs()}

    async def embed(self, texts: Sequence[str]) -> Vectors:
        return await asyncio.to_thread(self._embed, texts)

    def _embed(self, texts: Sequence[str]) -> Vectors:
        encoded = self._tokenizer.encode_batch([self._prefix + text for text in texts])
        mask = np.array([one.attention_mask for one in encoded], np.int64)
        given = {
            "input_ids": np.array([one.ids for one in encoded], np.int64),
            "attention_mask": mask,
            "token_type_ids": np.zeros_like(mask),
        }
        feed: Any = {name: value for name, value in given.items() if name in self._inputs}
        found = np.asarray(self._session.run([SENTENCE] if self._has_sentence else None, feed)[0], np.float32)
        if not self._has_sentence:
            found = (found * mask[:, :, None]).sum(axis=1) / mask.sum(axis=1, keepdims=True)
        return checked(found, len(texts), WHAT)


def _load(folder: Path) -> "tuple[Tokenizer, InferenceSession]":
    with needs("onnx", '[meaning] kind = "onnx"'):
        from onnxruntime import InferenceSession, SessionOptions  # noqa: PLC0415 - an extra
        from tokenizers import Tokenizer  # noqa: PLC0415 - likewise
    for name in ("model.onnx", "tokenizer.json"):
        if not (folder / name).is_file():
            raise Misuse(f"{WHAT}: there is no {name} in {folder}")
    options = SessionOptions()
    options.log_severity_level = ONLY_ERRORS
    options.intra_op_num_threads = 1  # the model must not take every core from the pipeline
    try:
        tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        tokenizer.enable_truncation(MOST_TOKENS)
        tokenizer.enable_padding()
        return tokenizer, InferenceSession(str(folder / "model.onnx"), options, providers=["CPUExecutionProvider"])
    except Exception as error:
        raise Misuse(f"{WHAT}: cannot load the model in {folder}: {' '.join(str(error).split())}") from error
