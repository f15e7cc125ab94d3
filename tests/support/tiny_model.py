"""A tiny model in a folder, as an export to ONNX: each token has a vector that its name decides; and the samples
with it.
"""

import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace

from tests.support.command import Neardup

DIMENSIONS = 32
KIND = {"NEARDUP_MEANING__KIND": "onnx"}


def table_of(tokens: int, seed: int = 7) -> "np.ndarray[tuple[int, int], np.dtype[np.float32]]":
    """The vector of each token, by its number."""
    return np.random.default_rng(seed).standard_normal((tokens, DIMENSIONS)).astype(np.float32)


def make_model(folder: Path, words: list[str], *, output: str = "last_hidden_state", seed: int = 7) -> Path:
    """A model that looks each word up in a table; with `sentence_embedding`, it gives the first token's vector.

    The first token is padding, the words follow, and the last one stands for every other word.
    """
    folder.mkdir()
    vocabulary = {word: n for n, word in enumerate(["[PAD]", *words, "[UNK]"])}
    tokenizer = Tokenizer(WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = Whitespace()
    tokenizer.save(str(folder / "tokenizer.json"))
    is_sentence = output == "sentence_embedding"
    nodes = [helper.make_node("Gather", ["table", "input_ids"], ["tokens"])]
    if is_sentence:
        nodes.append(helper.make_node("Gather", ["tokens", "first"], [output], axis=1))
    else:
        nodes.append(helper.make_node("Identity", ["tokens"], [output]))
    shape: list[str | int | None] = ["texts", DIMENSIONS] if is_sentence else ["texts", "positions", DIMENSIONS]
    graph = helper.make_graph(
        nodes,
        "tiny",
        [helper.make_tensor_value_info("input_ids", TensorProto.INT64, ["texts", "positions"])],
        [helper.make_tensor_value_info(output, TensorProto.FLOAT, shape)],
        [
            numpy_helper.from_array(table_of(len(vocabulary), seed), "table"),
            numpy_helper.from_array(np.array(0, np.int64), "first"),
        ],
    )
    opset = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=8), str(folder / "model.onnx"))
    return folder


SINCE = ("--since", "2020-01-01T00:00:00Z")
MEANING = '[meaning]\nkind = "onnx"\nfolder = "tiny"\n'
WORDS = ["king"]


def held(neardup: Neardup) -> set[int]:
    with closing(sqlite3.connect(f"{neardup.ledger}.vectors")) as db:
        return {story_id for (story_id,) in db.execute("SELECT story_id FROM vectors")}


def known(neardup: Neardup) -> set[int]:
    with closing(sqlite3.connect(neardup.ledger)) as db:
        return {story_id for (story_id,) in db.execute("SELECT id FROM stories")}
