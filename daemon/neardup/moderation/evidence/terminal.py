"""The evidence on a terminal: two stories side by side, or a bar for each source of a story and the passages in it.

The text of a story is never interpreted, neither as Rich markup nor as terminal escape sequences.
"""

import re
from itertools import zip_longest
from typing import Any

from rich.bar import Bar
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from neardup.ledger.marks import describe_marks
from neardup.moderation.wording import describe_pair_order, get_dates, list_dates, name_rare_words, name_sources
from neardup.query.compare import Evidence, Excerpt, StoryFacts
from neardup.query.similarity import PassageOfStory, SimilarityReport, SourceReport
from neardup.records import format_percent, format_readable_time

SHOWN_PASSAGES = 10
FIRST_WORDS, LAST_WORDS = 60, 20  # shown of a passage that is longer than both together
COPIED, CONTEXT = "black on yellow", "dim"
# White space, control characters, and bidirectional formatting, which would reverse the text that follows.
BLANK = re.compile(r"[\s\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]+")
BAR_WIDTH = 24
SHOWN_OF_A_SOURCE = 5  # of a source, the longest


def render_pair(facts: Evidence) -> Group:
    """The evidence for a pair, laid out for a terminal."""
    parts: list[RenderableType] = [_make_pair_header(facts), Text(), *map(Text, _list_findings(facts))]
    for n, passage in enumerate(facts.passages[:SHOWN_PASSAGES], 1):
        positions = f"from word {passage.a.word + 1:,} of A and word {passage.b.word + 1:,} of B"
        excerpts = _make_columns()
        excerpts.add_row(_render_excerpt(passage.a), _render_excerpt(passage.b))
        parts += [Text(), Text(f"{n}. {passage.words:,} words, {positions}", "bold"), excerpts]
    rest = facts.passages[SHOWN_PASSAGES:]
    if rest:
        parts += [Text(), Text(f"and {len(rest):,} more, of {sum(passage.words for passage in rest):,} words together")]
    return Group(*parts)


def _make_columns() -> Table:
    table = Table(box=None, show_header=False, expand=True, padding=(0, 1))
    for _ in "ab":
        table.add_column(ratio=1, overflow="fold")
    return table


def _make_pair_header(facts: Evidence) -> Table:
    table = _make_columns()
    a, b = facts.a, facts.b
    table.add_row(Text(f"A: {_name(a)}", "bold"), Text(f"B: {_name(b)}", "bold"))
    for key, template in (("title", "{}"), ("path", "{}"), ("author_id", "author {}")):
        values = getattr(a, key), getattr(b, key)
        if any(values):
            table.add_row(*(Text(template.format(make_plain(value)) if value else "") for value in values))
    for dates in zip_longest(list_dates(get_dates(a)), list_dates(get_dates(b))):
        table.add_row(
            *(Text(f"{date[0]} {format_readable_time(date[1])} ({date[2]})" if date else "") for date in dates)
        )
    table.add_row(*(Text(f"{side.words:,} words {side.language or ''}") for side in (a, b)))
    return table


def _name(about: StoryFacts) -> str:
    return make_plain(about.file or f"story {about.story_id}")


def _list_findings(facts: Evidence) -> list[str]:
    assert facts.share_a is not None
    assert facts.share_b is not None
    similarity = "" if facts.similarity is None else f"similarity {format_percent(facts.similarity)}"
    shares = f"{format_percent(facts.share_a)} of A is also in B, {format_percent(facts.share_b)} of B in A"
    scores = (
        f"{facts.hamming} of 128 bits differ, Jaccard {facts.jaccard:.2f}, "
        f"containment {facts.containment:.2f} (A in B) and {facts.matched_containment:.2f} (B in A)"
    )
    findings = [
        "; ".join(filter(None, [similarity, shares, _describe_words(facts)])),
        f"{facts.kind or 'not a copy by the configured thresholds'}: {scores}",
    ]
    if facts.rare_words:
        findings.append(f"rare words in the same order: {make_plain(name_rare_words(facts))}")
    findings.append(describe_pair_order(facts))
    if facts.same_author is not None:
        findings.append("the same author wrote both" if facts.same_author else "two different authors wrote them")
    return findings + [
        f"the page of {side.upper()} has changed since it was fingerprinted"
        for side in facts.sides
        if facts.sides[side].changed
    ]


def _describe_words(facts: Evidence) -> str:
    """What is known of the words that were copied; of two texts in two scripts, the longest run is not."""
    found = []
    if facts.copied_words is not None:
        common = f" and {facts.common_words:,} in common passages" if facts.common_words else ""
        found.append(f"{facts.copied_words:,} words copied{common}")
    if facts.longest_run_words is not None:
        found.append(f"the longest run {facts.longest_run_words:,}")
    return ", ".join(found)


def _render_excerpt(side: Excerpt) -> Text:
    return Text.assemble(
        (make_plain(side.before).lstrip(), CONTEXT),
        (f"«{abridge(side.text)}»", COPIED),
        (make_plain(side.after).rstrip(), CONTEXT),
    )


def abridge(text: str, first: int = FIRST_WORDS, last: int = LAST_WORDS) -> str:
    """A passage on one line; a long one without the words between its first and its last."""
    words = make_plain(text).split()
    if len(words) > first + last:
        words = [*words[:first], "[…]", *words[-last:]]
    return " ".join(words)


def make_plain(text: str) -> str:
    """A text on one line, without characters that a terminal would interpret."""
    return BLANK.sub(" ", text)


# The similarity of a story.


def render_report(report: SimilarityReport) -> Group:
    """A report, laid out for a terminal."""
    parts: list[RenderableType] = [*_render_story_header(report)]
    if report.sources:
        parts += [Text(), _render_bars(report)]
    for n, source in enumerate(report.sources, 1):
        parts += _render_passages(n, source)
    if report.no_text:
        parts += [Text(), Text(f"the passages have no text: {make_plain(report.no_text)}")]
    return Group(*parts)


def _render_story_header(report: SimilarityReport) -> list[Text]:
    published = format_readable_time(report.published_at) if report.published_at else None
    facts = [
        report.language,
        f"{report.words:,} words",
        *([f"author {make_plain(report.author_id)}"] if report.author_id else []),
        *([f"published {published}"] if published else []),
    ]
    if report.copied_words:
        stand = f"{report.copied_words:,} of its words stand in {name_sources(report)}"
    else:
        stand = "none of its words is known to be copied from a story by others"
    return [
        Text(make_plain(f"story {report.story_id}  {report.title}"), "bold"),
        Text(", ".join(facts)),
        Text(f"similarity {format_percent(report.similarity)}: {stand}"),
        *([Text(f"marked as {describe_marks(report.marks)}")] if report.marks else []),
        *([] if report.serial is None else [Text(make_plain(f"a chapter of the serial {report.serial}"))]),
        *(Text(make_plain(_describe_serials(match))) for match in report.serial_matches),
    ]


def _describe_serials(match: dict[str, Any]) -> str:
    """Which work follows which, and from which chapter to which."""
    works = (f"{match[f'{side}_serial']} by author {match[f'{side}_author_id']}" for side in ("copy", "source"))
    parts = (
        f"chapters {copy[0]:,} to {copy[1]:,} are chapters {source[0]:,} to {source[1]:,}"
        for source, copy in ((part["source"], part["copy"]) for part in match["parts"])
    )
    return f"serial {' follows '.join(works)}: {'; '.join(parts)}"


def _render_bars(report: SimilarityReport) -> Table:
    table = Table(box=None, header_style="bold", padding=(0, 1))
    for column in ("", "share", "", "words", "kind", "source", "author", "published"):
        table.add_column(column, overflow="fold", justify="right" if column in {"share", "words"} else "left")
    for n, source in enumerate(report.sources, 1):
        table.add_row(
            f"{n}.",
            format_percent(source.share),
            Bar(1, 0, source.share, width=BAR_WIDTH),
            f"{source.copied_words:,}",
            Text(source.kind if source.status == "open" else f"{source.kind}, {source.status.replace('_', ' ')}"),
            Text(make_plain(f"{source.story_id} {source.title}")),
            Text(make_plain(source.author_id or "")),
            Text(format_readable_time(source.published_at) if source.published_at else "not known"),
        )
    return table


def _render_passages(n: int, source: SourceReport) -> list[RenderableType]:
    longest = sorted(source.passages, key=lambda passage: passage.start - passage.end)[:SHOWN_OF_A_SOURCE]
    parts: list[RenderableType] = [Text(), Text(make_plain(f"{n}. In story {source.story_id}"), "bold")]
    parts += [_render_passage(passage) for passage in sorted(longest, key=lambda passage: passage.start)]
    if not source.passages:
        parts.append(Text("its passages are not known: a text was not available when the pair was verified"))
    if more := len(source.passages) - len(longest):
        parts.append(Text(f"and {more:,} more"))
    return parts


def _render_passage(passage: PassageOfStory) -> Text:
    where = f"words {passage.start + 1:,} to {passage.end:,}"
    return Text(where) if passage.text is None else Text.assemble(f"{where}  ", (f"«{abridge(passage.text)}»", COPIED))
