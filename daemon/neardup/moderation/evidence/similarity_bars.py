"""The similarity of a story on a terminal: a bar for each source, then the passages that stand in it.

The text of a story is never interpreted, neither as Rich markup nor as terminal escape sequences.
"""

from rich.bar import Bar
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from neardup.ledger.marks import in_words
from neardup.moderation.evidence.side_by_side import COPIED, abridged, plain
from neardup.moderation.publication_wording import stories_by_others
from neardup.moderation.wording import percent
from neardup.query.similarity import PassageOfStory, SimilarityReport, SourceReport
from neardup.records import readable_time

BAR_WIDTH = 24
SHOWN_PASSAGES = 5  # of a source, the longest


def similarity_bars(report: SimilarityReport) -> Group:
    """A report, laid out for a terminal."""
    parts: list[RenderableType] = [*_header(report)]
    if report.sources:
        parts += [Text(), _bars(report)]
    for n, source in enumerate(report.sources, 1):
        parts += _passages(n, source)
    if report.no_text:
        parts += [Text(), Text(f"the passages have no text: {plain(report.no_text)}")]
    return Group(*parts)


def _header(report: SimilarityReport) -> list[Text]:
    published = readable_time(report.published_at) if report.published_at else None
    facts = [
        report.language,
        f"{report.words:,} words",
        *([f"author {plain(report.author_id)}"] if report.author_id else []),
        *([f"published {published}"] if published else []),
    ]
    if report.copied_words:
        stand = f"{report.copied_words:,} of its words stand in {stories_by_others(report)}"
    else:
        stand = "none of its words is known to be copied from a story by others"
    return [
        Text(plain(f"story {report.name or report.story_id}  {report.title}"), "bold"),
        Text(", ".join(facts)),
        Text(f"similarity {percent(report.similarity)}: {stand}"),
        *([Text(f"marked as {in_words(report.marks)}")] if report.marks else []),
    ]


def _bars(report: SimilarityReport) -> Table:
    table = Table(box=None, header_style="bold", padding=(0, 1))
    for column in ("", "share", "", "words", "kind", "source", "author", "published"):
        table.add_column(column, overflow="fold", justify="right" if column in {"share", "words"} else "left")
    for n, source in enumerate(report.sources, 1):
        table.add_row(
            f"{n}.",
            percent(source.share),
            Bar(1, 0, source.share, width=BAR_WIDTH),
            f"{source.copied_words:,}",
            Text(source.kind if source.status == "open" else f"{source.kind}, {source.status.replace('_', ' ')}"),
            Text(plain(f"{source.name or source.story_id} {source.title}")),
            Text(plain(source.author_id or "")),
            Text(readable_time(source.published_at) if source.published_at else "not known"),
        )
    return table


def _passages(n: int, source: SourceReport) -> list[RenderableType]:
    longest = sorted(source.passages, key=lambda passage: passage.start - passage.end)[:SHOWN_PASSAGES]
    parts: list[RenderableType] = [Text(), Text(plain(f"{n}. In story {source.name or source.story_id}"), "bold")]
    parts += [_passage(passage) for passage in sorted(longest, key=lambda passage: passage.start)]
    if not source.passages:
        parts.append(Text("its passages are not known: a text was not available when the pair was verified"))
    if more := len(source.passages) - len(longest):
        parts.append(Text(f"and {more:,} more"))
    return parts


def _passage(passage: PassageOfStory) -> Text:
    where = f"words {passage.start + 1:,} to {passage.end:,}"
    return Text(where) if passage.text is None else Text.assemble(f"{where}  ", (f"«{abridged(passage.text)}»", COPIED))
