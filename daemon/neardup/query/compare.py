"""What two stories share: the evidence for a pair, from their texts as they are now."""

import sqlite3
from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from neardup.app import extraction, open_readers
from neardup.config import Config
from neardup.core.fingerprint import version as fingerprint_version
from neardup.core.fingerprint.compute import fingerprint, text_hash
from neardup.core.text.html import Unreadable, file_text
from neardup.core.text.normalize import Located, located
from neardup.core.verify.passages import passages
from neardup.core.verify.scores import Limits, hamming, hash_rows, kind_of, shingled
from neardup.core.verify.scores import compare as compare_texts
from neardup.errors import Crashed, Fatal, Forbidden, Gone, Misuse, TooLarge
from neardup.ledger import read, runs, stories, translated
from neardup.pages.reader_pool import Readers
from neardup.pages.reader_process import story_words
from neardup.pages.store import path_of
from neardup.records import Kind, Language, Story
from neardup.source.parse import id_of
from neardup.timestamps import rfc3339

CONTEXT_WORDS = 8


@dataclass(frozen=True, slots=True)
class Told:
    """One of the two: its text, its words, normalised, and what the ledger knows of it, or its file's name."""

    text: str
    words: list[bytes]
    known: Mapping[str, Any]
    file: str | None = None


@dataclass(frozen=True, slots=True)
class Untold:
    """A story whose text is not to be had: what the ledger knows of it, and why its text is not."""

    known: Mapping[str, Any]
    why: str


async def compare(config: Config, one: str, other: str) -> dict[str, Any]:
    """Two stories, each an id (digits alone) or the path of a page or plain text -> what they share, as plain data.

    Raises Misuse for what names no two stories, Fatal for a story whose text is not to be had,
    Transient for a store that does not answer.
    """
    a, b = await both(config, one, other)
    for story in (a, b):
        if isinstance(story, Untold):
            raise Fatal(f"story {story.known['id']}: {story.why}")
    assert isinstance(a, Told)
    assert isinstance(b, Told)
    return evidence(a, b, limits_of(config, a, b))


async def both(config: Config, one: str, other: str) -> list[Told | Untold]:
    """The two stories that `compare` is given; raises as it does, but not for a story without a text."""
    names = [_name(one), _name(other)]
    if len({name if isinstance(name, int) else name.resolve() for name in names}) == 1:
        raise Misuse(f"{one} and {other} are one story")
    known = _known(config, [name for name in names if isinstance(name, int)])
    with closing(open_readers(config)) as readers:
        return [await tell(config, readers, known[n]) if isinstance(n, int) else _file(config, n) for n in names]


def limits_of(config: Config, a: Told, b: Told) -> Limits:
    """The thresholds of the language in which two stories are told."""
    language = a.known.get("language") or b.known.get("language")
    return config.detection.of(Language(language)) if language else config.detection


def _name(argument: str) -> int | Path:
    if not (argument.isascii() and argument.isdecimal()):
        return Path(argument)
    try:
        return id_of(argument)
    except ValueError as error:
        raise Misuse(str(error)) from None


def _known(config: Config, ids: list[int]) -> dict[int, dict[str, Any]]:
    if not ids:
        return {}
    with closing(read(config.ledger.path)) as db, translated(config.ledger.path):
        known = described(db, ids)
    for story_id in ids:
        if story_id not in known:
            raise Fatal(f"story {story_id} is not in the ledger")
    return known


def described(db: sqlite3.Connection, ids: Iterable[int]) -> dict[int, dict[str, Any]]:
    """What the ledger holds of these stories, of those that it has; no text hash where it is of other fingerprints."""
    known = {story_id: dict(row) for story_id, row in stories.describe(db, ids).items()}
    recorded, made = runs.get(db, "fingerprint_version"), fingerprint_version.version()
    for story in known.values():
        if recorded is None or fingerprint_version.difference(recorded, made, {story["language"]}):
            story["text_hash"] = None
    return known


async def tell(config: Config, readers: Readers, known: Mapping[str, Any]) -> Told | Untold:
    """A story that the ledger knows (a row of `described`), with its text as it is now.  Raises Transient."""
    story = Story(known["id"], Language(known["language"]), known["path"])
    try:
        text, words = await readers.story(story)
        return Told(text, words, known)
    except Gone:
        return Untold(known, f"its page is gone: {path_of(config.content, story)}")
    except Unreadable as unreadable:
        return Untold(known, f"nothing to compare: {unreadable.reason}")
    except (TooLarge, Forbidden, Crashed) as error:
        return Untold(known, str(error))


def _file(config: Config, path: Path) -> Told:
    name = str(path).encode("utf-8", "replace").decode()  # a name may hold bytes that are no text
    try:
        text = file_text(path.read_bytes(), extraction(config))
        return Told(text, story_words(text), {}, name)
    except (OSError, ValueError) as error:
        raise Misuse(f"cannot read {name}: {getattr(error, 'strerror', None) or error}") from None
    except Unreadable as unreadable:
        raise Fatal(f"{name}: nothing to compare: {unreadable.reason}") from None


def evidence(a: Told, b: Told, limits: Limits) -> dict[str, Any]:
    """What two texts share, and what is known of their stories.

    `containment` is the share of a's shingles that stand in b, `matched_containment` the other way;
    `share_a` is the share of a's words that `passages`, the longest first, cover.
    """
    made = [fingerprint(told.words) for told in (a, b)]
    compared = [shingled(told.words) for told in (a, b)]
    [bits] = hamming(hash_rows([made[0].simhash]), hash_rows([made[1].simhash])).tolist()
    scores = compare_texts(*compared)
    found = passages(compared[0].words, compared[1].words)
    covered = sum(one.words for one in found)
    in_a, in_b = located(a.text), located(b.text)
    return {
        "a": _about(a),
        "b": _about(b),
        "kind": Kind.EXACT if made[0].text_hash == made[1].text_hash else kind_of(bits, scores, limits),
        "hamming": bits,
        "jaccard": scores.jaccard,
        "containment": scores.containment_a,
        "matched_containment": scores.containment_b,
        "longest_run_words": scores.longest_run_words,
        "estimated": False,
        "earlier": _earlier(a.known.get("published_at"), b.known.get("published_at")),
        "same_author": _same(a.known.get("author_id"), b.known.get("author_id")),
        "share_a": covered / len(a.words),
        "share_b": covered / len(b.words),
        "passages": [
            {
                "words": one.words,
                "a": _excerpt(in_a, one.start_a, one.words),
                "b": _excerpt(in_b, one.start_b, one.words),
            }
            for one in found
        ],
    }


def remembered(a: Told | Untold, b: Told | Untold, flag: Mapping[str, Any] | None) -> dict[str, Any]:
    """What the ledger knows of two stories, in the form of `evidence`, where a text is not to be had.

    `flag` is their row of the view `pairs`, if they were flagged; what is not known is None.
    """
    found = flag or {}
    ways = "containment", "matched_containment"
    if found.get("story_id") != a.known.get("id"):
        ways = ways[::-1]
    return {
        "a": _about(a),
        "b": _about(b),
        "kind": found.get("kind"),
        "hamming": found.get("hamming"),
        "jaccard": found.get("jaccard"),
        "containment": found.get(ways[0]),
        "matched_containment": found.get(ways[1]),
        "longest_run_words": found.get("longest_run_words"),
        "estimated": bool(found.get("estimated")),
        "earlier": _earlier(a.known.get("published_at"), b.known.get("published_at")),
        "same_author": _same(a.known.get("author_id"), b.known.get("author_id")),
        "share_a": None,
        "share_b": None,
        "passages": [],
    }


def _about(one: Told | Untold) -> dict[str, Any]:
    known, told = one.known, one if isinstance(one, Told) else None
    hashed = known.get("text_hash")
    return {
        "story_id": known.get("id"),
        "file": told.file if told else None,
        "language": known.get("language"),
        "title": known.get("title"),
        "author_id": known.get("author_id"),
        "published_at": rfc3339(known.get("published_at")),
        "words": len(told.words) if told else known.get("words"),
        "changed": hashed != text_hash(told.words) if hashed and told else None,
        "gone": None if isinstance(one, Told) else one.why,
    }


def _earlier(a: int | None, b: int | None) -> str | None:
    return None if a is None or b is None or a == b else "a" if a < b else "b"


def _same(a: str | None, b: str | None) -> bool | None:
    return None if a is None or b is None else a == b


def _excerpt(text: Located, word: int, words: int) -> dict[str, Any]:
    """Words [word, word + words) and some either side, as they stand in the text."""
    start, end = text.span(word, word + words)
    before, after = text.span(max(word - CONTEXT_WORDS, 0), min(word + words + CONTEXT_WORDS, len(text.starts)))
    return {
        "word": word,
        "before": text.text[before:start],
        "text": text.text[start:end],
        "after": text.text[end:after],
    }
