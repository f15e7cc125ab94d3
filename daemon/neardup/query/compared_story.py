"""One story of a pair that is compared: its text, if it can be read, and its facts."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from neardup.core.fingerprint.compute import text_hash
from neardup.core.text.normalize import Located, located
from neardup.records import rfc3339


@dataclass(frozen=True)
class LoadedStory:
    """A story with its text and its normalised words; `known` is its row of the ledger, empty for a file."""

    text: str
    words: list[bytes]
    known: Mapping[str, Any]
    file: str | None = None

    @property
    def text_hash(self) -> bytes:
        """The text hash of its fingerprint."""
        return text_hash(b" ".join(self.words))

    @cached_property
    def located(self) -> Located:
        """The places of its words, which take several milliseconds for a long text."""
        return located(self.text)


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
        words=len(story.words) if isinstance(story, LoadedStory) else known.get("words"),
        changed=ledger_hash != story.text_hash if ledger_hash and isinstance(story, LoadedStory) else None,
        gone=story.why if isinstance(story, UnreadableStory) else None,
    )
