"""The evidence for a pair of stories: their facts, and what their texts share.

A story of the pair is loaded, with its text, or cannot be read; then the ledger's row of the pair is the evidence.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from neardup.config import Detection, Thresholds
from neardup.core.fingerprint.word_hashes import PassageHashes
from neardup.core.publication_order import Dates, Side, earlier
from neardup.core.text.normalize import Located
from neardup.core.text.scripts import most_frequent_script
from neardup.core.verify import skeletons
from neardup.core.verify.alignment import NO_HASHES, align
from neardup.core.verify.passages import Passage, passages
from neardup.core.verify.scores import compare_texts
from neardup.core.verify.text import Text
from neardup.core.verify.tiers import COMMON_WORDS, COPIED_WORDS, PASSAGE, tier_of
from neardup.core.verify.tiers import Thresholds as Limits
from neardup.records import Kind, Language, rfc3339

CONTEXT_WORDS = 8


@dataclass(frozen=True, slots=True)
class LoadedStory:
    """A story with its text; `known` is its row of the ledger, empty for a file."""

    text: Text
    known: Mapping[str, Any]
    file: str | None = None


@dataclass(frozen=True, slots=True)
class UnreadableStory:
    """A story whose text cannot be read: its row of the ledger, and why there is no text."""

    known: Mapping[str, Any]
    why: str


@dataclass(frozen=True, slots=True)
class StoryFacts:
    """The facts of one story; `gone` is why its text cannot be read, `changed` whether it differs from the ledger's."""

    story_id: int | None
    file: str | None = None
    language: str | None = None
    title: str | None = None
    author_id: str | None = None
    published_at: str | None = None
    words: int | None = None
    changed: bool | None = None
    gone: str | None = None
    path: str | None = None
    name: str | None = None
    updated_at: str | None = None
    known_since: str | None = None
    catalogue: str | None = None
    licence: str | None = None


def facts_of(story: LoadedStory | UnreadableStory) -> StoryFacts:
    """The facts of a story for its evidence."""
    known = story.known
    ledger_hash = known.get("text_hash")
    return StoryFacts(
        story_id=known.get("id"),
        file=story.file if isinstance(story, LoadedStory) else None,
        language=known.get("language"),
        title=known.get("title"),
        path=known.get("path"),
        name=known.get("name"),
        author_id=known.get("author_id"),
        published_at=rfc3339(known.get("published_at")),
        updated_at=rfc3339(known.get("updated_at")),
        known_since=rfc3339(known.get("known_since")),
        catalogue=known.get("catalogue"),
        licence=known.get("licence"),
        words=len(story.text.word_hashes) if isinstance(story, LoadedStory) else known.get("words"),
        changed=ledger_hash != story.text.text_hash if ledger_hash and isinstance(story, LoadedStory) else None,
        gone=story.why if isinstance(story, UnreadableStory) else None,
    )


@dataclass(frozen=True, slots=True)
class Excerpt:
    """A passage in one story: the index of its first word, its text, and some text before and after it."""

    word: int
    before: str
    text: str
    after: str


@dataclass(frozen=True, slots=True)
class CopiedPassage:
    """A run of words that occurs in both stories."""

    words: int
    a: Excerpt
    b: Excerpt


@dataclass(frozen=True, slots=True)
class Evidence:
    """What two stories share; a value that is not known is None.

    `containment` is the share of a's shingles that occur in b, `matched_containment` the share of b's that occur in a.
    `copied_words` and `common_words` are those of `core.verify.alignment`.  `share_a` is the share of a's words that
    `passages` cover; they are sorted by length, the longest first.
    """

    a: StoryFacts
    b: StoryFacts
    kind: Kind | None
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

    @property
    def sides(self) -> dict[Side, StoryFacts]:
        """The facts of both stories."""
        return {"a": self.a, "b": self.b}

    @property
    def shares(self) -> dict[Side, float | None]:
        """The covered share of each story's words."""
        return {"a": self.share_a, "b": self.share_b}


def evidence(a: LoadedStory, b: LoadedStory, thresholds: Limits, common: PassageHashes = NO_HASHES) -> Evidence:
    """Compare two texts: what they share, and the facts of their stories.

    `common` are the hashes of common passages in their language, ascending.
    """
    text_a, text_b = a.text, b.text
    found = compare_texts(text_a, text_b, thresholds, common, is_of_one_language=_are_of_one_language(a, b))
    kind, signals = found.kind, found.signals
    shown = _passages(kind, text_a, text_b)
    covered = sum(passage.words for passage in shown)
    in_a, in_b = text_a.located, text_b.located
    return Evidence(
        a=facts_of(a),
        b=facts_of(b),
        kind=kind,
        hamming=signals.hamming,
        jaccard=signals.jaccard,
        containment=signals.containment_a,
        matched_containment=signals.containment_b,
        longest_run_words=signals.longest_run_words,
        **_copied_counts(signals.extra),
        estimated=False,
        earlier=earlier(_dates(a.known), _dates(b.known)),
        same_author=_same(a.known.get("author_id"), b.known.get("author_id")),
        share_a=covered / len(text_a.word_hashes),
        share_b=covered / len(text_b.word_hashes),
        passages=tuple(
            CopiedPassage(
                passage.words,
                _excerpt(in_a, passage.start_a, passage.words),
                _excerpt(in_b, passage.start_b, passage.words),
            )
            for passage in shown
        ),
    )


def evidence_from_ledger(
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
        a=facts_of(a),
        b=facts_of(b),
        kind=row.get("kind"),
        hamming=row.get("hamming"),
        jaccard=row.get("jaccard"),
        containment=containments[0],
        matched_containment=containments[1],
        longest_run_words=row.get("longest_run_words"),
        **_copied_counts(json.loads(row.get("signals") or "{}")),
        estimated=bool(row.get("estimated")),
        earlier=earlier(_dates(a.known), _dates(b.known)),
        same_author=_same(a.known.get("author_id"), b.known.get("author_id")),
    )


def _passages(kind: Kind | None, a: Text, b: Text) -> list[Passage]:
    """The passages to show for a pair of this kind.

    Two long stories share many runs of a few words by chance.  So where nothing but passages makes a pair a copy, if
    anything does, only those of the alignment are shown.
    """
    if kind is not None and tier_of(kind).compares == "skeletons":
        return skeletons.passages(a.skeleton, b.skeleton)
    if kind in {None, PASSAGE}:
        runs = sorted((-words, at_a, at_b) for at_a, at_b, words, _ in align(a.word_hashes, b.word_hashes).tolist())
        if runs:
            return [Passage(at_a, at_b, -words) for words, at_a, at_b in runs]
    return passages(a.word_hashes, b.word_hashes)


def _copied_counts(extra: Mapping[str, float]) -> dict[str, Any]:
    """The counts of copied words and of common words, where there are any."""
    return {name: extra.get(name) for name in (COPIED_WORDS, COMMON_WORDS)}


def _dates(known: Mapping[str, Any]) -> Dates:
    return Dates(known.get("published_at"), catalogue=known.get("catalogue"))


def _are_of_one_language(a: LoadedStory, b: LoadedStory) -> bool:
    """Whether both stories are filed under one language; a file is under none, so its script decides."""
    languages = [story.known.get("language") for story in (a, b)]
    return (
        languages[0] == languages[1]
        if all(languages)
        else most_frequent_script(a.text.written) == most_frequent_script(b.text.written)
    )


def _same(a: str | None, b: str | None) -> bool | None:
    return None if a is None or b is None else a == b


def _excerpt(text: Located, word: int, words: int) -> Excerpt:
    """The words [word, word + words) and CONTEXT_WORDS on either side, as they are written in the text."""
    start, end = text.span(word, word + words)
    before, after = text.span(max(word - CONTEXT_WORDS, 0), min(word + words + CONTEXT_WORDS, len(text.starts)))
    return Excerpt(word, text.text[before:start], text.text[start:end], text.text[end:after])


def thresholds_of(detection: Detection, a: LoadedStory, b: LoadedStory) -> Thresholds:
    """The thresholds for the language of two stories; the general ones if neither has a language."""
    language = language_of(a, b)
    return detection.of(language) if language else detection


def language_of(*pair: LoadedStory | UnreadableStory) -> Language | None:
    """The language of two stories; None if the ledger has neither."""
    return next((Language(story.known["language"]) for story in pair if story.known.get("language")), None)
