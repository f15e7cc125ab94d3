"""What two stories share: the evidence for a pair."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from neardup.config import Detection, Thresholds
from neardup.core.fingerprint.compute import fingerprint, text_hash
from neardup.core.text.normalize import Located, located
from neardup.core.verify.passages import passages
from neardup.core.verify.scores import Limits, compare, hamming, hash_rows, kind_of, shingled
from neardup.records import Kind, Language
from neardup.timestamps import rfc3339

CONTEXT_WORDS = 8

Side = Literal["a", "b"]


@dataclass(frozen=True, slots=True)
class LoadedStory:
    """One of two stories: its text, its normalised words, and what the ledger knows of it, or its file's name."""

    text: str
    words: list[bytes]
    known: Mapping[str, Any]
    file: str | None = None


@dataclass(frozen=True, slots=True)
class UnreadableStory:
    """A story whose text cannot be read: what the ledger knows of it, and why there is no text."""

    known: Mapping[str, Any]
    why: str


@dataclass(frozen=True, slots=True)
class StoryFacts:
    """What is known of one of two stories; `gone` says why its text cannot be read."""

    story_id: int | None
    file: str | None = None
    language: str | None = None
    title: str | None = None
    author_id: str | None = None
    published_at: str | None = None
    words: int | None = None
    changed: bool | None = None
    gone: str | None = None


@dataclass(frozen=True, slots=True)
class Excerpt:
    """A passage in one story, beginning at a word, and some text on either side."""

    word: int
    before: str
    text: str
    after: str


@dataclass(frozen=True, slots=True)
class CopiedPassage:
    """So many words that stand in both stories."""

    words: int
    a: Excerpt
    b: Excerpt


@dataclass(frozen=True, slots=True)
class Evidence:
    """What two stories share; None for what is not known.

    `containment` is the share of a's shingles that stand in b, `matched_containment` the other way;
    `share_a` is the share of a's words that `passages`, the longest first, cover.
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
    passages: tuple[CopiedPassage, ...] = ()

    @property
    def sides(self) -> dict[Side, StoryFacts]:
        return {"a": self.a, "b": self.b}

    @property
    def shares(self) -> dict[Side, float | None]:
        return {"a": self.share_a, "b": self.share_b}


def evidence(a: LoadedStory, b: LoadedStory, thresholds: Limits) -> Evidence:
    """What two texts share, and what is known of their stories."""
    made = [fingerprint(story.words) for story in (a, b)]
    compared = [shingled(story.words) for story in (a, b)]
    [bits] = hamming(hash_rows([made[0].simhash]), hash_rows([made[1].simhash])).tolist()
    scores = compare(*compared)
    found = passages(compared[0].words, compared[1].words)
    covered = sum(one.words for one in found)
    in_a, in_b = located(a.text), located(b.text)
    return Evidence(
        a=_about(a),
        b=_about(b),
        kind=Kind.EXACT if made[0].text_hash == made[1].text_hash else kind_of(bits, scores, thresholds),
        hamming=bits,
        jaccard=scores.jaccard,
        containment=scores.containment_a,
        matched_containment=scores.containment_b,
        longest_run_words=scores.longest_run_words,
        estimated=False,
        earlier=_earlier(a.known.get("published_at"), b.known.get("published_at")),
        same_author=_same(a.known.get("author_id"), b.known.get("author_id")),
        share_a=covered / len(a.words),
        share_b=covered / len(b.words),
        passages=tuple(
            CopiedPassage(one.words, _excerpt(in_a, one.start_a, one.words), _excerpt(in_b, one.start_b, one.words))
            for one in found
        ),
    )


def evidence_from_ledger(
    a: LoadedStory | UnreadableStory, b: LoadedStory | UnreadableStory, flag: Mapping[str, Any] | None
) -> Evidence:
    """What the ledger knows of two stories, where a text cannot be read; `flag` is their row of the view `pairs`."""
    found = flag or {}
    ways = "containment", "matched_containment"
    if found.get("story_id") != a.known.get("id"):
        ways = ways[::-1]
    return Evidence(
        a=_about(a),
        b=_about(b),
        kind=found.get("kind"),
        hamming=found.get("hamming"),
        jaccard=found.get("jaccard"),
        containment=found.get(ways[0]),
        matched_containment=found.get(ways[1]),
        longest_run_words=found.get("longest_run_words"),
        estimated=bool(found.get("estimated")),
        earlier=_earlier(a.known.get("published_at"), b.known.get("published_at")),
        same_author=_same(a.known.get("author_id"), b.known.get("author_id")),
    )


def _about(story: LoadedStory | UnreadableStory) -> StoryFacts:
    known = story.known
    hashed = known.get("text_hash")
    return StoryFacts(
        story_id=known.get("id"),
        file=story.file if isinstance(story, LoadedStory) else None,
        language=known.get("language"),
        title=known.get("title"),
        author_id=known.get("author_id"),
        published_at=rfc3339(known.get("published_at")),
        words=len(story.words) if isinstance(story, LoadedStory) else known.get("words"),
        changed=hashed != text_hash(story.words) if hashed and isinstance(story, LoadedStory) else None,
        gone=story.why if isinstance(story, UnreadableStory) else None,
    )


def _earlier(a: int | None, b: int | None) -> Side | None:
    return None if a is None or b is None or a == b else "a" if a < b else "b"


def _same(a: str | None, b: str | None) -> bool | None:
    return None if a is None or b is None else a == b


def _excerpt(text: Located, word: int, words: int) -> Excerpt:
    """Words [word, word + words) and some either side, as they stand in the text."""
    start, end = text.span(word, word + words)
    before, after = text.span(max(word - CONTEXT_WORDS, 0), min(word + words + CONTEXT_WORDS, len(text.starts)))
    return Excerpt(word, text.text[before:start], text.text[start:end], text.text[end:after])


def thresholds_of(detection: Detection, a: LoadedStory, b: LoadedStory) -> Thresholds:
    """The thresholds of the language of two stories."""
    language = a.known.get("language") or b.known.get("language")
    return detection.of(Language(language)) if language else detection
