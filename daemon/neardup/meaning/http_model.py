"""A model behind a URL that follows OpenAI's `/v1/embeddings`."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from neardup.errors import Fatal, Transient
from neardup.meaning.centring import Vectors
from neardup.meaning.embedders import checked
from neardup.retry import retried

BUSY = frozenset({408, 425, 429})  # and every 5xx


class HttpModel:
    """The embedder: `url` is the whole address, `headers` go with each request, `prefix` stands before each text."""

    def __init__(
        self, url: str, model: str, *, headers: Mapping[str, str], prefix: str = "", timeout_seconds: float = 60
    ) -> None:
        self.model = model
        self._url = url
        self._headers = headers
        self._prefix = prefix
        self._timeout_seconds = timeout_seconds

    async def embed(self, texts: Sequence[str]) -> Vectors:
        body = {"model": self.model, "input": [self._prefix + text for text in texts], "encoding_format": "float"}
        answer = await retried("embed", lambda: self._post(body))
        return checked(_vectors(answer, len(texts)), len(texts), "meaning.url")

    async def _post(self, body: Mapping[str, object]) -> bytes:
        import aiohttp  # noqa: PLC0415 - 0.3 s, for installations with a URL only

        timeout = aiohttp.ClientTimeout(total=self._timeout_seconds)
        try:
            async with (
                aiohttp.ClientSession(timeout=timeout, headers=self._headers) as session,
                session.post(self._url, json=body, allow_redirects=False) as answer,
            ):
                status, content = answer.status, await answer.read()
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
            raise Transient(f"meaning.url does not answer: {type(error).__name__}", "embeddings") from None
        if status >= 500 or status in BUSY:
            raise Transient(f"meaning.url answers {status}", "embeddings")
        if status != 200:
            raise Fatal(f"meaning.url answers {status}")
        return content


def _vectors(answer: bytes, texts: int) -> Vectors:
    """The vectors of an answer, in the order of the texts.  Raises Fatal."""
    try:
        data: list[dict[str, Any]] = json.loads(answer)["data"]
        by_index = {int(one["index"]): one["embedding"] for one in data}
        return np.array([by_index[n] for n in range(texts)], np.float32)
    except (ValueError, KeyError, TypeError, IndexError) as error:
        raise Fatal(f"meaning.url answers with something else than {texts} embeddings") from error
