"""The command about marked stories: `suspects`."""

import json
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict
from typing import TYPE_CHECKING, Literal

import click

from neardup.cli.base import command, json_option
from neardup.cli.flag_options import language_of
from neardup.records import MarkReason
from neardup.timestamps import readable, rfc3339

if TYPE_CHECKING:
    from rich.table import Table

    from neardup.config import Config
    from neardup.ledger.marked_stories import MarkedAuthor, MarkedStory


SHOWN = 50


@command
@click.option("--reason", type=click.Choice(list(map(str, MarkReason))), help="Only stories with this mark.")
@click.option("--language", "names", multiple=True, metavar="L", help="A name or an ISO code; may be repeated.")
@click.option("--author", metavar="ID", help="Only stories by this author.")
@click.option(
    "--by", type=click.Choice(["story", "author"]), default="story", help="A row a story or an author.  [story]"
)
@click.option("--limit", type=click.IntRange(1), help=f"Rows at most.  [{SHOWN}; with --json all]")
@json_option
def suspects(
    config: "Config",
    *,
    reason: str | None,
    names: tuple[str, ...],
    author: str | None,
    by: Literal["story", "author"],
    limit: int | None,
    as_json: bool,
) -> None:
    """List the marked stories, those marked last first, or count them by author.

    A story is marked if its page may be made to evade detection: most of its text is hidden, its letters
    are look-alikes, it is written in another script than its language, it was read in part or not at all.
    """
    from neardup.cli import printing
    from neardup.ledger import marked_stories, read, snapshot, translate_errors
    from neardup.ledger.marked_stories import MarkFilter

    choice = MarkFilter(reason, tuple(language_of(config.registry, name) for name in names), author)
    most = limit or (-1 if as_json else SHOWN)
    with closing(read(config.ledger.path)) as db, translate_errors(config.ledger.path), snapshot(db):
        total, reasons = marked_stories.counted(db, choice)
        stories = marked_stories.listed(db, choice, most) if by == "story" else []
        authors = marked_stories.by_author(db, choice, most) if by == "author" else []
    if as_json:
        rows = {"suspects": list(map(_record, stories))} if by == "story" else {"authors": list(map(asdict, authors))}
        click.echo(json.dumps({"stories": total, "by_reason": reasons, **rows}, ensure_ascii=False))
    elif total:
        count = ", ".join(f"{name} {n:,}" for name, n in reasons.items())
        printing.out.print(f"{total:,}  ({count})")
        printing.out.print(_stories_table(stories) if by == "story" else _authors_table(authors))
        if by == "story" and total > len(stories):
            printing.out.print(f"and {total - len(stories):,} more; --json prints all")
    else:
        printing.out.print("No suspects.")


def _record(story: "MarkedStory") -> dict[str, object]:
    """A story as a JSON object."""
    return asdict(story) | {"marked_at": rfc3339(story.marked_at)}


def _stories_table(stories: "Sequence[MarkedStory]") -> "Table":
    from rich.text import Text

    from neardup.ledger import marked_stories
    from neardup.moderation.evidence.side_by_side import plain

    table = _table("story", "language", "author", "title", "reasons", "marked at")
    for one in stories:
        reasons = marked_stories.in_words(one.marks)
        marked_at = readable(rfc3339(one.marked_at))
        cells = (one.name or one.story_id, one.language, one.author_id or "", one.title, reasons, marked_at)
        table.add_row(*(Text(plain(str(cell))) for cell in cells))
    return table


def _authors_table(authors: "Sequence[MarkedAuthor]") -> "Table":
    from rich.text import Text

    from neardup.cli import printing
    from neardup.moderation.evidence.side_by_side import plain

    table = _table("author", "stories", "reasons")
    for one in authors:
        author = "not known" if one.author_id is None else plain(one.author_id)
        table.add_row(Text(author), f"{one.stories:,}", printing.by_reason(Counter(one.reasons)))
    return table


def _table(*columns: str) -> "Table":
    from rich.table import Table

    table = Table(header_style="bold")
    for column in columns:
        table.add_column(column, overflow="fold", justify="right" if column == "stories" else "left")
    return table
