"""The version of the fingerprints: one digest for the algorithm, and one for each language.

The algorithm's digest is of fixed words, so it changes with a hash constant, numpy or xxhash.  A language's
digest is of its golden text, so it changes with the normaliser and the Unicode tables too, as far as they
concern that language.  Both are computed at start.  A version on record names the digests of the languages
known when it was written; a language that is added later changes none of them.
"""

from collections.abc import Collection, Iterable, Iterator
from functools import cache

import xxhash

from neardup.core.fingerprint.compute import compiled_road, fingerprint, fingerprint_text
from neardup.core.text.normalize import tokens
from neardup.languages import SHIPPED, Languages
from neardup.records import Language

WORDS = [f"{word}{n}".encode() for n in range(40) for word in ("a", "é", "क", "ம", "ی", "\U0001f600")]
LENGTHS = (1, 2, 9, 15, 18, len(WORDS))  # with repeated words, those around the least that have a signature
PINNED_ALGORITHM = "1f11c02920832c5c"
PINNED = {
    "HINDI": "4fab739ddc19964e",
    "MALAYALAM": "d351492cbf56a36a",
    "BENGALI": "04fc2ce0362e9c07",
    "MARATHI": "dba9ee017f9ec4cd",
    "TAMIL": "f77d12ac8f2f1bb1",
    "TELUGU": "e2c19dc6fefb4896",
    "GUJARATI": "b2b3267f60dacc28",
    "ENGLISH": "5a0ab35b9032a451",
    "ODIA": "563e3955f9782ffb",
    "PUNJABI": "94961098d1144568",
    "KANNADA": "81147f1cd2d5710a",
    "ASSAMESE": "5d2fcb3d4700db47",
    "URDU": "cf118a6025954f7b",
}


@cache
def algorithm() -> str:
    """The version of the algorithm: 16 hexadecimal digits."""
    return _digest(words + words[::2] + words[::3] for n in LENGTHS for words in [WORDS[:n]])


@cache
def digest_of(golden: str) -> str:
    """The digest of a language's golden text: 16 hexadecimal digits."""
    return _digest(_stories(golden))


@cache
def version(languages: Languages = SHIPPED) -> str:
    """What is put on record with fingerprints: the algorithm's version, then `NAME=<digest>` for each language."""
    digests = (f"{name}={digest_of(entry.golden)}" for name, entry in languages.items())
    return " ".join((algorithm(), *digests))


def difference(recorded: str, made: str, held: Collection[str]) -> str | None:
    """Why fingerprints of two versions cannot be compared, in words; None where they can.

    `held` are the languages with stories.  Those that either version does not name are not compared.
    """
    (old, *old_digests), (new, *new_digests) = recorded.split(), made.split()
    if old != new:
        return f"fingerprints of version {old}, this program makes {new}"
    now = _by_name(new_digests)
    for name, digest in _by_name(old_digests).items():
        if name in held and now.get(name, digest) != digest:
            return f"fingerprints of {name} of version {digest}, this program makes {now[name]}"
    return None


def unpinned() -> list[str]:
    """The shipped languages whose fingerprints are not those of this release; ALGORITHM for all of them."""
    if algorithm() != PINNED_ALGORITHM:
        return ["ALGORITHM"]
    return [name for name, entry in SHIPPED.items() if digest_of(entry.golden) != PINNED[name]]


def warm_up() -> bool:
    """Load the compiled kernel, which the first process ever to do so compiles; False where the system forbids it.

    Raises RuntimeError where it makes other fingerprints of the golden texts than the plain implementation.
    """
    for entry in SHIPPED.values():
        for words in _stories(entry.golden):
            if fingerprint_text(b" ".join(words).decode()) != fingerprint(words):
                raise RuntimeError(
                    "compiled fingerprints are not what they should be: empty the folder of numba's cache"
                )
    return compiled_road() is not None


def _stories(golden: str) -> Iterator[list[bytes]]:
    words = tokens(golden)
    yield words + words[::2] + words[::3]  # repeated words have weights
    yield words + words[::-1] + words[::2] + words[::3]  # shingles enough for a signature


def _digest(stories: Iterable[list[bytes]]) -> str:
    digest = xxhash.xxh3_64()
    for words in stories:
        made = fingerprint(words)
        digest.update(b" ".join(words) + made.text_hash + made.simhash + (made.signature or b""))
    return digest.hexdigest()


def _by_name(digests: Collection[str]) -> dict[Language, str]:
    pairs = (entry.partition("=") for entry in digests)
    return {Language(name): digest for name, _, digest in pairs}
