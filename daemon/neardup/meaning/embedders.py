"""Embedders: what turns texts into unit vectors."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from neardup.errors import Fatal
from neardup.meaning.centring import Vectors, unit

# A model is recognised by the vector of this text.  It has three scripts, since models for one language differ least
# in that one.
PROBE = "The moon rose over the village well. गाँव के कुएँ पर चाँद निकला। கிராமத்துக் கிணற்றின் மேல் நிலவு எழுந்தது."
SAME_MODEL = 0.98  # cosine: machines round differently; two models of one size differ far more


class Embedder(Protocol):
    """Turns texts into vectors; vectors of two models are never compared."""

    @property
    def model(self) -> str:
        """The name of the model, by which its vectors are kept apart from those of others."""

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """The unit vectors of texts: (texts, dimensions).

        Raises Transient if the model does not answer, Fatal if its answer is none.
        """


def checked(vectors: Vectors, texts: int, what: str) -> Vectors:
    """The vectors (texts, dimensions) at unit length.

    Raises Fatal, whose message begins with `what`, if there is not one vector for each text.
    """
    if vectors.ndim != 2 or len(vectors) != texts:
        raise Fatal(f"{what}: {texts} texts gave vectors of shape {vectors.shape}")
    scaled = unit(vectors.astype(np.float32))
    if not np.isfinite(scaled).all() or not scaled.any(axis=1).all():
        raise Fatal(f"{what}: a vector has no direction")
    return scaled


async def probe(embedder: Embedder) -> Vectors:
    """The vector by which the model is recognised: (dimensions,)."""
    vector: Vectors = (await embedder.embed([PROBE]))[0]
    return vector


def is_same_model(vector: Vectors, other: Vectors) -> bool:
    """Whether two probes are those of one model."""
    return vector.shape == other.shape and float(vector @ other) >= SAME_MODEL
