"""The evidence for a pair of stories: their facts, and what their texts share.

A story of the pair is loaded, with its text, or cannot be read; then the ledger's row of the pair is the evidence.
"""

import json
from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from neardup.config import Detection, Thresholds
from neardup.core.fingerprint.word_hashes import PassageHashes
from neardup.core.publication_order import Dates, Side, find_earlier
from neardup.core.text.normalize import Located
from neardup.core.text.scripts import find_most_frequent_script
from neardup.core.verify.alignment import NO_HASHES
from neardup.core.verify.scores import compare_texts
from neardup.core.verify.spans import count_words, find_rare_words, find_runs, measure_share, measure_similarity
from neardup.core.verify.text import Text
from neardup.core.verify.tiers import COMMON_WORDS, COPIED_WORDS
from neardup.core.verify.tiers import Thresholds as Limits
from neardup.records import Kind, Language, ShownId, Spans, format_time, show_id

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


def make_facts(story: LoadedStory | UnreadableStory) -> StoryFacts:
    """The facts of a story for its evidence."""
    known = story.known
    ledger_hash = known.get("text_hash")
    return StoryFacts(
        story_id=show_id(known["id"], known.get("name")) if "id" in known else None,
        file=story.file if isinstance(story, LoadedStory) else None,
        language=known.get("language"),
        title=known.get("title"),
        path=known.get("path"),
        author_id=known.get("author_id"),
        published_at=format_time(known.get("published_at")),
        updated_at=format_time(known.get("updated_at")),
        known_since=format_time(known.get("known_since")),
        catalogue=known.get("catalogue"),
        licence=known.get("licence"),
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
        a=make_facts(a),
        b=make_facts(b),
        kind=found.kind,
        similarity=measure_similarity(found, len(text_a.word_hashes), len(text_b.word_hashes)),
        hamming=signals.hamming,
        jaccard=signals.jaccard,
        containment=signals.containment_a,
        matched_containment=signals.containment_b,
        longest_run_words=signals.longest_run_words,
        **_count_copied(signals.extra),
        estimated=False,
        earlier=find_earlier(_make_dates(a.known), _make_dates(b.known)),
        same_author=_are_same(a.known.get("author_id"), b.known.get("author_id")),
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
        a=make_facts(a),
        b=make_facts(b),
        kind=row.get("kind"),
        similarity=row.get("similarity"),
        hamming=row.get("hamming"),
        jaccard=row.get("jaccard"),
        containment=containments[0],
        matched_containment=containments[1],
        longest_run_words=row.get("longest_run_words"),
        **_count_copied(json.loads(row.get("signals") or "{}")),
        estimated=bool(row.get("estimated")),
        earlier=find_earlier(_make_dates(a.known), _make_dates(b.known)),
        same_author=_are_same(a.known.get("author_id"), b.known.get("author_id")),
    )


def _count_copied(extra: Mapping[str, float]) -> dict[str, Any]:
    """The counts of copied words and of common words, where there are any."""
    return {name: extra.get(name) for name in (COPIED_WORDS, COMMON_WORDS)}


def _make_dates(known: Mapping[str, Any]) -> Dates:
    return Dates(known.get("published_at"), catalogue=known.get("catalogue"))


def _are_of_one_language(a: LoadedStory, b: LoadedStory) -> bool:
    """Whether both stories are filed under one language; a file is under none, so its script decides."""
    languages = [story.known.get("language") for story in (a, b)]
    return (
        languages[0] == languages[1]
        if all(languages)
        else find_most_frequent_script(a.text.written) == find_most_frequent_script(b.text.written)
    )


def _are_same(a: str | None, b: str | None) -> bool | None:
    return None if a is None or b is None else a == b


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
