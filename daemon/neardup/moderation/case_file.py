"""The case file of a story: what was found and decided, on a few pages that stand by themselves, and the notice.

The case is a story with its sources.  Its record is read from the ledger, and the texts from the store; it is rendered
as HTML and as PDF.  The notice informs the author of the story of what was found, in the story's language.
"""

import asyncio
import hashlib
import logging
import sqlite3
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from msgspec import Struct

from neardup.config import Config
from neardup.core.fingerprint.word_hashes import PassageHashes
from neardup.core.languages import Languages
from neardup.core.publication_order import Dates
from neardup.errors import Misuse, needs_extra
from neardup.ledger import complaints, flags, marks, passages, similarities, verdicts
from neardup.ledger.complaints import Complaint
from neardup.ledger.flags import Selection
from neardup.ledger.similarities import Similarity, Source
from neardup.ledger.verdicts import Event
from neardup.moderation.evidence.alignment import PassagePair, align_stories
from neardup.moderation.templating import make_environment, make_font_rules, make_page_values, read_static
from neardup.moderation.wording import (
    describe_row_order,
    list_warnings,
    read_dates,
)
from neardup.query.compare import LoadedStory, UnreadableStory, describe_stories, find_evidence, find_language
from neardup.records import STATUSES, Kind, Language, Marks, ShownId, format_percent, is_work, show_id

COMPARED_SOURCES = 8  # whose texts are read; the others are listed
LISTED_OTHERS = 20
PASSAGES_OF_A_SOURCE = 10
MAIN_CHARACTERS = 4_000  # of passages before the appendix, so that they end on its third page

LoadText = Callable[[Mapping[str, Any]], Awaitable[LoadedStory | UnreadableStory]]
ARTICLE, PAGE = "case_article.html.j2", "case_file.html.j2"
NOTICE_OF_OTHERS = "en"  # the language of the notice where there is none in the author's
PANGO = "Pango, a system library: apt-get install libpango-1.0-0 libpangoft2-1.0-0 libharfbuzz-subset0"


class CaseRecord(Struct, frozen=True):
    """What the ledger knows of a story with its sources.

    `known` are the rows of the story and of the sources to compare, by id; `others` those of its other flags.  `common`
    are the hashes of common passages, ascending, by language.
    """

    found: Similarity
    known: Mapping[int, dict[str, Any]]
    others: list[dict[str, Any]]
    events: list[Event]
    common: Mapping[Language, PassageHashes]
    marks: Marks
    complaints: tuple[Complaint, ...]


class FiledSource(Struct, frozen=True):
    """A source, numbered from 1; `problem` says why its text is missing."""

    number: int
    about: Source
    link: str | None
    problem: str | None


class OtherMatch(Struct, frozen=True):
    """A story that matches this one, but is no source of it: by a verdict, by its author, or because it came later."""

    shown: ShownId
    title: str
    author_id: str | None
    kind: Kind
    status: str
    dates: Dates
    order: str
    is_same_author: bool
    link: str | None


class FiledPassage(Struct, frozen=True):
    """Passages of the story (b) as they stand in a source (a)."""

    source: int
    pair: PassagePair


class CaseFile(Struct, frozen=True):
    """A story with its sources, the longest `passages`, the `further` ones for the appendix, and some other matches.

    `more` counts the passages that are not shown.
    """

    record: CaseRecord
    link: str | None
    warnings: tuple[str, ...]
    sources: tuple[FiledSource, ...]
    passages: tuple[FiledPassage, ...]
    further: tuple[FiledPassage, ...]
    more: int
    others: tuple[OtherMatch, ...]

    @property
    def verdicts(self) -> list[Event]:
        """The verdicts that stand, the latest at the top, each with the pairs on which no later one stands."""
        undone = {event["decision"] for event in self.record.events if event["event"] == "undo"}
        given = [
            event for event in self.record.events if event["event"] == "verdict" and event["decision"] not in undone
        ]
        standing: list[Event] = []
        decided: set[tuple[int, int]] = set()
        for event in sorted(given, key=lambda event: event["decision"], reverse=True):  # a clock may go back
            if pairs := [pair for pair in event["pairs"] if (pair["a"], pair["b"]) not in decided]:
                standing.append(event | {"pairs": pairs})
                decided |= {(pair["a"], pair["b"]) for pair in pairs}
        return standing


def read_case_record(db: sqlite3.Connection, story_id: int) -> CaseRecord | None:
    """What the ledger knows of a story with its sources; None for a story that it does not have."""
    found = similarities.read_similarity(db, story_id)
    if found is None:
        return None
    compared = [source.story_id for source in found.sources[:COMPARED_SOURCES]]
    counted = {source.flag_id for source in found.sources}
    every = flags.select(db, Selection(statuses=STATUSES, story=story_id, same_author=True))
    known = describe_stories(db, [story_id, *compared])
    spoken = {Language(row["language"]) for row in known.values()}
    return CaseRecord(
        found,
        known,
        [row for row in every if row["flag_id"] not in counted],
        verdicts.list_events_on_story(db, story_id),
        {language: passages.read_common(db, language) for language in spoken},
        marks.read_marks(db, [story_id]).get(story_id, ()),
        tuple(complaints.list_of_stories(db, [story_id])),
    )


async def make_case_file(record: CaseRecord, config: Config, load: LoadText) -> CaseFile:
    """The case file of a story; `load` reads the current text of a story, given its row."""
    loaded = await asyncio.gather(*map(load, record.known.values()))
    texts = dict(zip(record.known, loaded, strict=True))
    return await asyncio.to_thread(_compose, record, config, texts)


def _compose(record: CaseRecord, config: Config, texts: Mapping[int, LoadedStory | UnreadableStory]) -> CaseFile:
    found = record.found
    story = texts[found.story_id]
    sources: list[FiledSource] = []
    passages: list[FiledPassage] = []
    changed: dict[str, None] = {}
    more = 0
    for number, about in enumerate(found.sources, 1):
        source = texts.get(about.story_id)
        problem = None
        if isinstance(story, LoadedStory) and isinstance(source, LoadedStory):
            language = find_language(source, story) or found.language
            facts = find_evidence(source, story, config.detection.of(language), record.common[language])
            aligned = align_stories(facts, source, story)
            longest = sorted(aligned.pairs, key=lambda pair: -pair.words)[:PASSAGES_OF_A_SOURCE]
            passages += (FiledPassage(number, pair) for pair in longest)
            more += aligned.more + len(aligned.pairs) - len(longest)
            changed |= dict.fromkeys(_name_sides(sentence, number) for sentence in list_warnings(facts))
        elif source is not None:
            problem = source.why if isinstance(source, UnreadableStory) else None
        link = link_to(config, found.language, about.story_id, about.shown)
        sources.append(FiledSource(number, about, link, problem))
    if isinstance(story, UnreadableStory):
        changed[f"The text of the story is not available ({story.why})"] = None
    passages.sort(key=lambda passage: -passage.pair.words)
    shown = _count_fitting(passages)
    return CaseFile(
        record,
        link_to(config, found.language, found.story_id, found.shown),
        tuple(changed),
        tuple(sources),
        tuple(passages[:shown]),
        tuple(passages[shown:]),
        more,
        tuple(_make_other(row, found, config) for row in record.others[:LISTED_OTHERS]),
    )


def _make_other(row: Mapping[str, Any], found: Similarity, config: Config) -> OtherMatch:
    side = "matched" if row["story_id"] == found.story_id else "story"
    story_id, name, author_id = (row[f"{side}_{column}"] for column in ("id", "name", "author_id"))
    shown = show_id(story_id, name)
    return OtherMatch(
        shown,
        row[f"{side}_title"],
        author_id,
        row["kind"],
        row["status"],
        read_dates(row, f"{side}_"),
        describe_row_order(row),
        author_id is not None and author_id == found.author_id,
        link_to(config, found.language, story_id, shown),
    )


def _name_sides(warning: str, source: int) -> str:
    return warning.replace("The page of A", f"The page of source {source}").replace(
        "The page of B", "The page of the story"
    )


def _count_fitting(passages: Sequence[FiledPassage]) -> int:
    """How many of these passages fit before the appendix; at least one, which is itself abridged."""
    characters = 0
    for n, passage in enumerate(passages):
        characters += sum(len(fragment.text) for fragment in (*passage.pair.a, *passage.pair.b))
        if characters > MAIN_CHARACTERS:
            return max(n, 1)
    return len(passages)


def link_to(config: Config, language: str, story_id: int, shown: ShownId) -> str | None:
    """The address of a story on the platform, or of a work; None if the `link` of their `content` is not set."""
    if not is_work(story_id):
        return config.content.link_to(language, shown)
    if config.reference is None:
        return None
    return config.reference.content.link_to(language, str(shown).partition("/")[2])


# HTML, PDF, and the notice.


def render_html(case: CaseFile, languages: Languages) -> str:
    """The case file as one self-contained page, which prints the SHA-256 of its own element <article>, in UTF-8."""
    jinja = make_environment(languages)
    article = jinja.get_template(ARTICLE).render(case=case, record=case.record, found=case.record.found)
    return jinja.get_template(PAGE).render(
        case=case,
        article=article,
        digest=compute_digest(article),
        **make_page_values(read_static("case_file.css") + make_font_rules(languages)),
    )


def compute_digest(article: str) -> str:
    """The SHA-256 of the element <article> of a case file, in hexadecimal."""
    return hashlib.sha256(article.strip().encode()).hexdigest()


def render_pdf(page: str) -> bytes:
    """The page of a case file as PDF, with its fonts embedded.

    Raises Misuse if the extra or its system library is missing.
    """
    check_pdf()
    logging.getLogger("weasyprint").setLevel(logging.ERROR)  # it warns of CSS that only browsers know
    from weasyprint import HTML  # type: ignore[import-untyped] # noqa: PLC0415 - it is optional, and takes half a second

    written: bytes = HTML(string=page, url_fetcher=_refuse_url).write_pdf()
    return written


def check_pdf() -> None:
    """Raises Misuse if the extra for PDF or its system library is missing."""
    try:
        with needs_extra("pdf", "a PDF"):
            import weasyprint  # noqa: F401, PLC0415 - as above
    except OSError as error:
        raise Misuse(f"a PDF needs {PANGO}") from error


@cache
def has_pdf() -> bool:
    """Whether the extra for PDF and its system library are there."""
    try:
        check_pdf()
    except Misuse:
        return False
    return True


def _refuse_url(url: str) -> dict[str, Any]:
    raise ValueError(f"a case file loads nothing: {url}")


def render_notice(case: CaseFile, languages: Languages) -> str:
    """The notice to the author, in the language of the story.  Raises Misuse for a story without a source."""
    if not case.record.found.copied_words:
        raise Misuse("there is nothing to notify: no part of this story is known to be copied")
    entry = languages.get(case.record.found.language)
    code = entry.code if entry and entry.code in list_notice_languages() else NOTICE_OF_OTHERS
    return (
        _open_notices()
        .get_template(f"{code}.txt")
        .render(
            title=case.record.found.title,
            share=format_percent(case.record.found.similarity),
            sources=case.sources,
            link=case.link,
            reference=case.record.found.shown,
        )
    )


def list_notice_languages() -> set[str]:
    """The ISO codes of the languages that have a notice."""
    return {path.stem for path in (Path(__file__).parent / "notices").glob("*.txt")}


@cache
def _open_notices() -> Environment:
    return Environment(
        loader=PackageLoader("neardup.moderation", "notices"),
        autoescape=False,  # noqa: S701 - a notice is plain text
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
