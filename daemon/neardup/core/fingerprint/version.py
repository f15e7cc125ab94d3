"""The version of the fingerprints: one digest for the algorithm, and one for each language.

The algorithm's digest covers the fingerprints of fixed words, so it changes with a hash constant, numpy or xxhash.
A language's digest covers the fingerprints of its golden text, so it also changes with the parts of the normaliser
and of the Unicode tables that concern the language.  Both are pinned for the package as it is; they are computed at
start where libraries or a configuration have a part in them.  A recorded version names the digests of the languages
known when it was written; adding a language later changes none of them.
"""

from collections.abc import Collection, Iterable, Iterator
from functools import cache

import xxhash

from neardup.core.fingerprint.compute import fingerprint, fingerprint_text, hash_text
from neardup.core.languages import PINNED, SHIPPED, Languages
from neardup.core.native import LIBRARY
from neardup.core.native.fingerprint import fingerprint_utf8
from neardup.core.text.normalize import are_kept, tokenize
from neardup.records import Fingerprint, Language

WORDS = [f"{word}{n}".encode() for n in range(40) for word in ("a", "é", "क", "ம", "ی", "\U0001f600")]
LENGTHS = (1, 2, 9, 15, 18, len(WORDS))  # with the repetitions added, some are just below and above MIN_SHINGLES
PINNED_ALGORITHM = "18a958d1a5dfd9f0"
PINNED_BY_TEXT = {entry.golden: PINNED[name] for name, entry in SHIPPED.items()}


@cache
def algorithm() -> str:
    """The version of the algorithm: 16 hexadecimal digits."""
    return PINNED_ALGORITHM if _is_determined() else digest_of_algorithm()


@cache
def digest_of(golden: str) -> str:
    """The digest of a language's golden text: 16 hexadecimal digits."""
    return (PINNED_BY_TEXT.get(golden) if _is_determined() else None) or compute_digest(golden)


def digest_of_algorithm() -> str:
    """As `algorithm`, computed."""
    return _digest(words + words[::2] + words[::3] for n in LENGTHS for words in [WORDS[:n]])


def compute_digest(golden: str) -> str:
    """As `digest_of`, computed."""
    return _digest(_list_golden_stories(golden))


def _is_determined() -> bool:
    """Whether the package alone determines its fingerprints, so that they have the digests that its tests pin.

    What the native core makes of a text depends on the version of Unicode only; the reference depends on libraries too.
    """
    return LIBRARY is not None and are_kept()


@cache
def version(languages: Languages = SHIPPED) -> str:
    """The version recorded with fingerprints: the algorithm's version, then `NAME=<digest>` for each language."""
    digests = (f"{name}={digest_of(entry.golden)}" for name, entry in languages.items())
    return " ".join((algorithm(), *digests))


def explain_difference(recorded: str, current: str, held: Collection[str]) -> str | None:
    """A message that says why fingerprints of two versions cannot be compared; None if they can.

    Of `held`, the languages with stories, only those that both versions name are compared.
    """
    (old, *old_digests), (new, *new_digests) = recorded.split(), current.split()
    if old != new:
        return f"fingerprints of version {old}, this program makes {new}"
    current_digests = _name_digests(new_digests)
    for name, digest in _name_digests(old_digests).items():
        if name in held and current_digests.get(name, digest) != digest:
            return f"fingerprints of {name} of version {digest}, this program makes {current_digests[name]}"
    return None


def list_changed() -> list[str]:
    """The shipped languages whose digests are not the pinned ones; only ALGORITHM if that of the algorithm is not."""
    if digest_of_algorithm() != PINNED_ALGORITHM:
        return ["ALGORITHM"]
    return [name for name, entry in SHIPPED.items() if compute_digest(entry.golden) != PINNED[name]]


def check_native_core() -> None:
    """Raise RuntimeError if its fingerprints of the golden texts differ from those of the reference."""
    for entry in SHIPPED.values():
        for words in _list_golden_stories(entry.golden):
            if fingerprint_text(b" ".join(words).decode()) != fingerprint(words):
                raise RuntimeError("the native core gives wrong fingerprints: install neardup again")


def _tokenize(golden: str) -> list[bytes]:
    """As `tokenize`, by the native core where there is one: every command waits for the digests."""
    return tokenize(golden) if LIBRARY is None else hash_text(golden).normalised.split()


def _list_golden_stories(golden: str) -> Iterator[list[bytes]]:
    words = _tokenize(golden)
    yield words + words[::2] + words[::3]  # repeated words, for the weights
    yield words + words[::-1] + words[::2] + words[::3]  # enough shingles for a signature


def _fingerprint_of(words: list[bytes]) -> Fingerprint:
    """As `fingerprint`, likewise."""
    made = 0 if LIBRARY is None else fingerprint_utf8(b" ".join(words), is_normalised=True)
    return fingerprint(words) if isinstance(made, int) else made


def _digest(stories: Iterable[list[bytes]]) -> str:
    digest = xxhash.xxh3_64()
    for words in stories:
        result = _fingerprint_of(words)
        digest.update(
            b" ".join(words) + result.text_hash + result.simhash + (result.signature or b"") + result.passages
        )
    return digest.hexdigest()


def _name_digests(digests: Collection[str]) -> dict[Language, str]:
    pairs = (entry.partition("=") for entry in digests)
    return {Language(name): digest for name, _, digest in pairs}
