"""Compares two stories, each given by its id or as a file, by their current texts.

A story of the pair is loaded, with its text, or cannot be read; then the ledger's row of the pair is the evidence.
"""

import json
import os
import sqlite3
from collections.abc import Iterable, Mapping
from contextlib import aclosing
from pathlib import Path
from typing import Any

from msgspec import Struct

from neardup.config import Detection, Thresholds
from neardup.core.fingerprint import version as fingerprint_version
from neardup.core.fingerprint.word_hashes import PassageHashes
from neardup.core.page import Unreadable, read_file
from neardup.core.publication_order import Dates, Side, find_earlier
from neardup.core.text.extraction import Extraction
from neardup.core.text.normalize import Located
from neardup.core.text.scripts import find_most_frequent_script
from neardup.core.verify.alignment import NO_HASHES
from neardup.core.verify.scores import compare_texts
from neardup.core.verify.spans import count_words, find_rare_words, find_runs, measure_share, measure_similarity
from neardup.core.verify.text import Text
from neardup.core.verify.tiers import COMMON_WORDS, COPIED_WORDS
from neardup.core.verify.tiers import Thresholds as Limits
from neardup.errors import Fatal, Misuse, Transient
from neardup.ledger import marks, open_snapshot, passages, runs, story_rows
from neardup.pages.reader_pool import OpenReaderPool, ReaderPool
from neardup.pages.results import ReadFailed, explain
from neardup.records import Dead, Kind, Language, ShownId, Skip, Spans, Story, format_time, show_id
from neardup.source.parse import parse_id, parse_name

CONTEXT_WORDS = 8
WordSpans = tuple[tuple[int, int], ...]


class LoadedStory(Struct, frozen=True):
    """A story with its text; `known` is its row of the ledger, empty for a file."""

    text: Text
    known: Mapping[str, Any]
    file: str | None = None


class UnreadableStory(Struct, frozen=True):
    """A story whose text cannot be read: its row of the ledger, and why there is no text."""

    known: Mapping[str, Any]
    why: str


class StoryFacts(Struct, frozen=True):
    """The facts of one story; `gone` is why its text cannot be read, `changed` whether it differs from the ledger's."""

    story_id: ShownId | None
    file: str | None = None
    language: str | None = None
    title: str | None = None
    author_id: str | None = None
    published_at: str | None = None
    words: int | None = None
    changed: bool | None = None
    gone: str | None = None
    path: str | None = None
    updated_at: str | None = None
    known_since: str | None = None
    catalogue: str | None = None
    licence: str | None = None


def _make_facts(story: LoadedStory | UnreadableStory) -> StoryFacts:
    """The facts of a story for its evidence."""
    known = story.known
    ledger_hash = known.get("text_hash")
    return StoryFacts(
        story_id=show_id(known["id"], known.get("name")) if "id" in known else None,
        **{name: known.get(name) for name in ("language", "title", "path", "author_id", "catalogue", "licence")},
        **{name: format_time(known.get(name)) for name in ("published_at", "updated_at", "known_since")},
        file=story.file if isinstance(story, LoadedStory) else None,
        words=len(story.text.word_hashes) if isinstance(story, LoadedStory) else known.get("words"),
        changed=ledger_hash != story.text.text_hash if ledger_hash and isinstance(story, LoadedStory) else None,
        gone=story.why if isinstance(story, UnreadableStory) else None,
    )


class Excerpt(Struct, frozen=True):
    """A passage in one story: its words [word, word + words), its text, and some text before and after it."""

    word: int
    words: int
    before: str
    text: str
    after: str


class CopiedPassage(Struct, frozen=True):
    """A run of equal words; where skeletons are compared, words whose consonants are equal.

    `words` are those of the side that has fewer.
    """

    words: int
    a: Excerpt
    b: Excerpt


class Evidence(Struct, frozen=True):
    """What two stories share; a value that is not known is None.

    `similarity` is that of the pair, the larger of the shares that are copied (see `core.verify.spans`).
    `containment` is the share of a's shingles that occur in b, `matched_containment` the share of b's that occur in a.
    `spans_a` and `spans_b` are the copied words [start, end) of either story with the edits inside them, and `share_a`
    is the share of a's words that stand in `spans_a`.  `passages` are the runs of equal words in these spans, the
    longest first; `copied_words` counts their words without repetitions, and `common_words` what is left out because
    it stands in common passages.  `rare_words` are those, as a has them, by which one story is the other rewritten.
    """

    a: StoryFacts
    b: StoryFacts
    kind: Kind | None
    similarity: float | None
    hamming: int | None
    jaccard: float | None
    containment: float | None
    matched_containment: float | None
    longest_run_words: int | None
    estimated: bool
    earlier: Side | None
    same_author: bool | None
    share_a: float | None = None
    share_b: float | None = None
    copied_words: int | None = None
    common_words: int | None = None
    passages: tuple[CopiedPassage, ...] = ()
    spans_a: WordSpans = ()
    spans_b: WordSpans = ()
    rare_words: tuple[str, ...] = ()

    @property
    def sides(self) -> dict[Side, StoryFacts]:
        """The facts of both stories."""
        return {"a": self.a, "b": self.b}

    @property
    def shares(self) -> dict[Side, float | None]:
        """The copied share of each story's words."""
        return {"a": self.share_a, "b": self.share_b}


def find_evidence(a: LoadedStory, b: LoadedStory, thresholds: Limits, common: PassageHashes = NO_HASHES) -> Evidence:
    """Compare two texts: what they share, and the facts of their stories.

    `common` are the hashes of common passages in their language, ascending.
    """
    text_a, text_b = a.text, b.text
    found = compare_texts(text_a, text_b, thresholds, common, is_of_one_language=_are_of_one_language(a, b))
    signals, in_a, in_b = found.signals, text_a.located, text_b.located
    passages = (
        CopiedPassage(min(end_a - at_a, end_b - at_b), _cut_excerpt(in_a, at_a, end_a), _cut_excerpt(in_b, at_b, end_b))
        for at_a, end_a, at_b, end_b in find_runs(text_a, text_b, found).tolist()
    )
    return Evidence(
        **_describe_stories(a, b),
        kind=found.kind,
        similarity=measure_similarity(found, len(text_a.word_hashes), len(text_b.word_hashes)),
        hamming=signals.hamming,
        jaccard=signals.jaccard,
        containment=signals.containment_a,
        matched_containment=signals.containment_b,
        longest_run_words=signals.longest_run_words,
        **_count_copied(signals.extra),
        estimated=False,
        share_a=measure_share(count_words(found.spans_a), len(text_a.word_hashes)),
        share_b=measure_share(count_words(found.spans_b), len(text_b.word_hashes)),
        passages=tuple(sorted(passages, key=lambda passage: (-passage.words, passage.a.word))),
        spans_a=_list_spans(found.spans_a),
        spans_b=_list_spans(found.spans_b),
        rare_words=tuple(_cut_word(in_a, place) for place in find_rare_words(text_a, text_b, found).tolist()),
    )


def read_evidence(
    a: LoadedStory | UnreadableStory, b: LoadedStory | UnreadableStory, flag: Mapping[str, Any] | None
) -> Evidence:
    """The evidence of the ledger, for two stories of which a text cannot be read.

    `flag` is their row of the view `pairs`, if they were flagged.
    """
    row = flag or {}
    containments = row.get("containment"), row.get("matched_containment")
    if row.get("story_id") != a.known.get("id"):  # the row has b first
        containments = containments[::-1]
    return Evidence(
        **_describe_stories(a, b),
        kind=row.get("kind"),
        similarity=row.get("similarity"),
        hamming=row.get("hamming"),
        jaccard=row.get("jaccard"),
        containment=containments[0],
        matched_containment=containments[1],
        longest_run_words=row.get("longest_run_words"),
        **_count_copied(json.loads(row.get("signals") or "{}")),
        estimated=bool(row.get("estimated")),
    )


def _count_copied(extra: Mapping[str, float]) -> dict[str, Any]:
    """The counts of copied words and of common words, where there are any."""
    return {name: extra.get(name) for name in (COPIED_WORDS, COMMON_WORDS)}


def _describe_stories(*pair: LoadedStory | UnreadableStory) -> dict[str, Any]:
    """What the evidence says of two stories whatever their texts are."""
    a, b = (_make_facts(story) for story in pair)
    dates = (Dates(story.known.get("published_at"), catalogue=story.known.get("catalogue")) for story in pair)
    same_author = None if a.author_id is None or b.author_id is None else a.author_id == b.author_id
    return {"a": a, "b": b, "earlier": find_earlier(*dates), "same_author": same_author}


def _are_of_one_language(a: LoadedStory, b: LoadedStory) -> bool:
    """Whether both stories are filed under one language; a file is under none, so its script decides."""
    languages = [story.known.get("language") for story in (a, b)]
    return (
        languages[0] == languages[1]
        if all(languages)
        else find_most_frequent_script(a.text.written) == find_most_frequent_script(b.text.written)
    )


def _list_spans(spans: Spans) -> WordSpans:
    return tuple((start, end) for start, end in spans.tolist())


def _cut_word(text: Located, word: int) -> str:
    start, end = text.find_span(word, word + 1)
    return text.text[start:end]


def _cut_excerpt(text: Located, first: int, last: int) -> Excerpt:
    """The words [first, last) and CONTEXT_WORDS on either side, as they are written in the text."""
    start, end = text.find_span(first, last)
    before, after = text.find_span(max(first - CONTEXT_WORDS, 0), min(last + CONTEXT_WORDS, len(text.starts)))
    return Excerpt(first, last - first, text.text[before:start], text.text[start:end], text.text[end:after])


def choose_thresholds(detection: Detection, a: LoadedStory, b: LoadedStory) -> Thresholds:
    """The thresholds for the language of two stories; the general ones if neither has a language."""
    language = find_language(a, b)
    return detection.of(language) if language else detection


def find_language(*pair: LoadedStory | UnreadableStory) -> Language | None:
    """The language that two stories are filed under as a pair, that of the lower id; None if the ledger has neither."""
    known = [story.known for story in pair if story.known.get("language")]
    return Language(min(known, key=lambda row: row.get("id") or 0)["language"]) if known else None


# Comparing by ids and files.


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
