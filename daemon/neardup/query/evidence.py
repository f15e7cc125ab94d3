"""The evidence for a pair: what two stories share."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from neardup.config import Detection, Thresholds
from neardup.core.fingerprint.compute import fingerprint, text_hash
from neardup.core.fingerprint.passage_hashes import PassageHashes
from neardup.core.text.normalize import Located, located
from neardup.core.verify.alignment import NO_HASHES, aligned
from neardup.core.verify.passages import Passage, passages
from neardup.core.verify.scores import Shingled, hamming, hash_rows, measure, shingled
from neardup.core.verify.tiers import COMMON_WORDS, COPIED_WORDS, PASSAGE, kind_of
from neardup.core.verify.tiers import Thresholds as Limits
from neardup.records import Kind, Language
from neardup.timestamps import rfc3339

CONTEXT_WORDS = 8

Side = Literal["a", "b"]


@dataclass(frozen=True, slots=True)
class LoadedStory:
    """A story with its text and its normalised words; `known` is its row of the ledger, empty for a file."""

    text: str
    words: list[bytes]
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
    fingerprint_a, fingerprint_b = fingerprint(a.words), fingerprint(b.words)
    shingles_a, shingles_b = shingled(a.words), shingled(b.words)
    [distance] = hamming(hash_rows([fingerprint_a.simhash]), hash_rows([fingerprint_b.simhash])).tolist()
    same_text = fingerprint_a.text_hash == fingerprint_b.text_hash
    signals = replace(measure(shingles_a, shingles_b, distance, common), same_text=same_text)
    kind = kind_of(signals, thresholds)
    shown = _passages(kind, shingles_a, shingles_b)
    covered = sum(passage.words for passage in shown)
    in_a, in_b = located(a.text), located(b.text)
    return Evidence(
        a=_facts(a),
        b=_facts(b),
        kind=kind,
        hamming=distance,
        jaccard=signals.jaccard,
        containment=signals.containment_a,
        matched_containment=signals.containment_b,
        longest_run_words=signals.longest_run_words,
        **_copied(signals.extra),
        estimated=False,
        earlier=_earlier(a.known.get("published_at"), b.known.get("published_at")),
        same_author=_same(a.known.get("author_id"), b.known.get("author_id")),
        share_a=covered / len(a.words),
        share_b=covered / len(b.words),
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
        a=_facts(a),
        b=_facts(b),
        kind=row.get("kind"),
        hamming=row.get("hamming"),
        jaccard=row.get("jaccard"),
        containment=containments[0],
        matched_containment=containments[1],
        longest_run_words=row.get("longest_run_words"),
        **_copied(json.loads(row.get("signals") or "{}")),
        estimated=bool(row.get("estimated")),
        earlier=_earlier(a.known.get("published_at"), b.known.get("published_at")),
        same_author=_same(a.known.get("author_id"), b.known.get("author_id")),
    )


def _passages(kind: Kind | None, a: Shingled, b: Shingled) -> list[Passage]:
    """The passages to show for a pair of this kind.

    Two long stories share many runs of a few words by chance.  So where nothing but passages makes a pair a copy, if
    anything does, only those of the alignment are shown.
    """
    if kind in {None, PASSAGE}:
        runs = sorted((-words, at_a, at_b) for at_a, at_b, words, _ in aligned(a.words, b.words).tolist())
        if runs:
            return [Passage(at_a, at_b, -words) for words, at_a, at_b in runs]
    return passages(a.words, b.words)


def _copied(extra: Mapping[str, float]) -> dict[str, Any]:
    """The counts of copied words and of common words, where there are any."""
    return {name: extra.get(name) for name in (COPIED_WORDS, COMMON_WORDS)}


def _facts(story: LoadedStory | UnreadableStory) -> StoryFacts:
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
        words=len(story.words) if isinstance(story, LoadedStory) else known.get("words"),
        changed=ledger_hash != text_hash(story.words) if ledger_hash and isinstance(story, LoadedStory) else None,
        gone=story.why if isinstance(story, UnreadableStory) else None,
    )


def _earlier(a: int | None, b: int | None) -> Side | None:
    return None if a is None or b is None or a == b else "a" if a < b else "b"


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
