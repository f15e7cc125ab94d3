"""Compare two stories, each given by its id or as a file, by their current texts."""

import os
import sqlite3
from collections.abc import Iterable, Mapping
from contextlib import aclosing
from pathlib import Path
from typing import Any

from msgspec import Struct

from neardup.config import Detection
from neardup.core.fingerprint import version as fingerprint_version
from neardup.core.fingerprint.word_hashes import PassageHashes
from neardup.core.page import Unreadable, read_file
from neardup.core.text.extraction import Extraction
from neardup.core.verify.alignment import NO_HASHES
from neardup.core.verify.text import Text
from neardup.errors import Fatal, Misuse, Transient
from neardup.ledger import marks, open_snapshot, passages, runs, story_rows
from neardup.pages.reader_pool import OpenReaderPool, ReaderPool
from neardup.pages.results import ReadFailed, explain
from neardup.query.evidence import (
    Evidence,
    LoadedStory,
    UnreadableStory,
    choose_thresholds,
    find_evidence,
    find_language,
)
from neardup.records import Dead, Language, Skip, Story
from neardup.source.parse import parse_id, parse_name


class Comparer(Struct, frozen=True):
    """The parts of `compare`: the ledger, a reader pool for stories, and how to extract a text from a file.

    Ledger and pool are None if there is no configuration; then only files can be compared.
    """

    ledger: Path | None
    open_pool: OpenReaderPool | None
    extraction: Extraction
    detection: Detection


async def compare(comparer: Comparer, first: str, second: str) -> Evidence:
    """Two stories, each given as an id or as the path of a page or plain text -> what they share.

    Digits are an id.  Other text is a path, or else the name of a story.

    Raises Misuse for arguments that do not name two stories, Fatal for a story whose text cannot be read, Transient
    for a store that does not answer.
    """
    a, b = await load_pair(comparer, first, second)
    for story in (a, b):
        if isinstance(story, UnreadableStory):
            raise Fatal(f"story {story.known['name'] or story.known['id']}: {story.why}")
    assert isinstance(a, LoadedStory)
    assert isinstance(b, LoadedStory)
    common = NO_HASHES
    if comparer.ledger is not None and (a.known or b.known):
        with open_snapshot(comparer.ledger) as db:
            common = read_common(db, a, b)
    return find_evidence(a, b, choose_thresholds(comparer.detection, a, b), common)


def read_common(db: sqlite3.Connection, *pair: LoadedStory | UnreadableStory) -> PassageHashes:
    """The hashes of common passages in the language of two stories, ascending; none if the ledger has neither story."""
    language = find_language(*pair)
    return NO_HASHES if language is None else passages.read_common(db, language)


async def load_pair(comparer: Comparer, first: str, second: str) -> list[LoadedStory | UnreadableStory]:
    """Load the two stories of `compare`; raises as it does, except for a story whose text cannot be read."""
    names = [_parse_argument(comparer, first), _parse_argument(comparer, second)]
    if len({name if isinstance(name, int) else name.resolve() for name in names}) == 1:
        raise Misuse(f"{first} and {second} are the same story")
    if all(isinstance(name, Path) for name in names):
        return [_load_file(comparer.extraction, Path(name)) for name in (first, second)]
    if comparer.ledger is None or comparer.open_pool is None:
        raise Misuse("the id of a story needs a configuration, and there is no config.toml here")
    ids = {name: argument for name, argument in zip(names, (first, second), strict=True) if isinstance(name, int)}
    known = _read_rows(comparer.ledger, ids)
    async with aclosing(comparer.open_pool()) as pool:
        return [
            await load_story(pool, known[name]) if isinstance(name, int) else _load_file(comparer.extraction, name)
            for name in names
        ]


def _parse_argument(comparer: Comparer, argument: str) -> int | Path:
    is_name = parse_name(argument) is not None
    is_file = os.path.exists(argument)  # noqa: PTH110 - Path refuses a name that is too long for a file
    if is_name and (comparer.ledger is None or is_file or not comparer.ledger.exists()):
        return Path(argument)
    try:
        return parse_id(argument)
    except ValueError:
        return Path(argument)


def _read_rows(ledger: Path, ids: Mapping[int, str]) -> dict[int, dict[str, Any]]:
    """The rows of these stories, whose ids were given as the texts.  Raises Fatal for one without a fingerprint."""
    with open_snapshot(ledger) as db:
        known = describe_stories(db, ids)
        for story_id, argument in ids.items():
            if story_id not in known:
                if parse_name(argument) is not None and not marks.read_marks(db, [story_id]):
                    raise Misuse(f"{argument} is neither a file nor a story in the ledger")
                raise marks.explain_no_fingerprint(db, story_id, argument)
    return known


def describe_stories(db: sqlite3.Connection, ids: Iterable[int]) -> dict[int, dict[str, Any]]:
    """The ledger's rows of these stories, by id, for those that it has.

    The text hash is None if the ledger has fingerprints of another version.
    """
    known = story_rows.describe(db, ids)
    recorded, made = runs.get(db, "fingerprint_version"), fingerprint_version.version()
    for story in known.values():
        if recorded is None or fingerprint_version.explain_difference(recorded, made, {story["language"]}):
            story["text_hash"] = None
    return known


async def load_story(pool: ReaderPool, known: Mapping[str, Any]) -> LoadedStory | UnreadableStory:
    """Read the current text of a story; `known` is its row of `describe_stories`.

    Raises Transient if the store does not answer.
    """
    story = Story(known["id"], Language(known["language"]), known["path"])
    match await pool.read_text(story):
        case Text() as text:
            return LoadedStory(text, known)
        case Unreadable(Skip.MISSING) as failure:
            return UnreadableStory(known, f"{explain(failure)}: {pool.make_path(story)}")
        case ReadFailed(Dead.STORE_ERROR, error):
            raise Transient(error)
        case failure:
            return UnreadableStory(known, explain(failure))


def _load_file(extraction: Extraction, path: Path) -> LoadedStory:
    name = str(path).encode("utf-8", "replace").decode()  # a name may contain bytes that are not UTF-8
    try:
        result = read_file(path.read_bytes(), extraction)
    except (OSError, ValueError) as error:
        raise Misuse(f"cannot read {name}: {getattr(error, 'strerror', None) or error}") from None
    if isinstance(result, Unreadable):
        raise Fatal(f"{name}: {explain(result)}")
    return LoadedStory(result, {}, name)
