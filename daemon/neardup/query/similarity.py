"""The similarity of a story: how much of it stands in earlier stories by others, with the copied passages."""

from collections.abc import Mapping, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any

from msgspec import Struct

from neardup.core.text.normalize import Located
from neardup.ledger import open_snapshot, serials, similarities
from neardup.ledger.marks import explain_no_fingerprint, read_marks
from neardup.ledger.serials import SerialMatch
from neardup.ledger.similarities import Similarity, Source
from neardup.pages.reader_pool import OpenReaderPool
from neardup.query.compare import LoadedStory, UnreadableStory, describe_stories, load_story
from neardup.records import Kind, Language, Marks, ShownId, format_time


class PassageOfStory(Struct, frozen=True):
    """The words [start, end) of the story, counted from 0, and their text; None where it is not known."""

    start: int
    end: int
    text: str | None


class SourceReport(Struct, frozen=True):
    """A source of a story, with the passages of the story that stand in it.

    `share` is the part of the story's words that stand in this source.  `source_spans` are the copied words of the
    source; they and `passages` do not correspond one by one.
    """

    story_id: ShownId
    title: str | None
    path: str | None
    author_id: str | None
    published_at: str | None
    kind: Kind
    status: str
    copied_words: int
    share: float
    passages: tuple[PassageOfStory, ...]
    source_spans: tuple[tuple[int, int], ...]
    catalogue: str | None
    licence: str | None


class SimilarityReport(Struct, frozen=True):
    """The similarity of a story, and its sources by share, the largest first.

    `no_text` is why the passages have no text, None where they have it; `marks` are what is unusual about the story.
    `serial` names the serial of which it is a chapter, and `serial_matches` are that serial's matches with others.
    """

    story_id: ShownId
    language: Language
    title: str | None
    path: str | None
    author_id: str | None
    published_at: str | None
    words: int
    copied_words: int
    similarity: float
    no_text: str | None
    sources: tuple[SourceReport, ...]
    marks: Marks
    serial: str | None
    serial_matches: tuple[dict[str, Any], ...]


async def compute_similarity(ledger: Path, open_pool: OpenReaderPool, story_id: int, argument: str) -> SimilarityReport:
    """The similarity of a story by the ledger, with passages from its current text.

    Raises Fatal, which names the story by `argument`, if it has no fingerprint; Transient if the store does not answer.
    """
    with open_snapshot(ledger) as db:
        found = similarities.read_similarity(db, story_id)
        known = describe_stories(db, [story_id]).get(story_id)
        marks = read_marks(db, [story_id]).get(story_id, ())
        if found is None or known is None:
            raise explain_no_fingerprint(db, story_id, argument)
        of_serials = serials.list_matches_of_story(db, story_id)
    if not found.copied_words:
        return _report(found, marks, of_serials, None, None)
    async with aclosing(open_pool()) as pool:
        story = await load_story(pool, known)
    return _report(found, marks, of_serials, *_read_text(story, known))


def _read_text(story: LoadedStory | UnreadableStory, known: Mapping[str, Any]) -> tuple[Located | None, str | None]:
    """The text, and why there is none."""
    if isinstance(story, UnreadableStory):
        return None, story.why
    if known["text_hash"] != story.text.text_hash:
        return None, "the page has changed since it was fingerprinted"
    return story.text.located, None


def _report(
    found: Similarity,
    marks: Marks,
    of_serials: tuple[str | None, Sequence[SerialMatch]],
    text: Located | None,
    no_text: str | None,
) -> SimilarityReport:
    serial, matches = of_serials
    return SimilarityReport(
        found.shown,
        found.language,
        title=found.title,
        path=found.path,
        author_id=found.author_id,
        published_at=format_time(found.published_at),
        words=found.words,
        copied_words=found.copied_words,
        similarity=found.similarity,
        no_text=no_text,
        sources=tuple(_make_source(source, text) for source in found.sources),
        marks=marks,
        serial=serial,
        serial_matches=tuple(match.as_dict() for match in matches),
    )


def _make_source(source: Source, text: Located | None) -> SourceReport:
    return SourceReport(
        source.shown,
        title=source.title,
        path=source.path,
        author_id=source.author_id,
        published_at=format_time(source.published_at),
        catalogue=source.catalogue,
        licence=source.licence,
        kind=source.kind,
        status=source.status,
        copied_words=source.copied_words,
        share=source.share,
        passages=tuple(
            PassageOfStory(start, end, None if text is None else text.text[slice(*text.find_span(start, end))])
            for start, end in source.spans.tolist()
        ),
        source_spans=tuple((start, end) for start, end in source.source_spans.tolist()),
    )
