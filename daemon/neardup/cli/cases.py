"""The commands about decided cases: `case` and `verdicts`."""

from collections.abc import Mapping
from contextlib import aclosing, closing
from typing import TYPE_CHECKING, Any, Literal

import click

from neardup.cli import console
from neardup.cli.base import command, parse_time_option, story_id
from neardup.cli.event_loop import run_async
from neardup.cli.flag_options import output_target

if TYPE_CHECKING:
    from neardup.config import Config
    from neardup.moderation.case_file.content import CaseFile
    from neardup.option_values import Target
    from neardup.query.compared_story import LoadedStory, UnreadableStory


Form = Literal["html", "pdf", "notice"]


@command
@click.argument("story", metavar="ID")
@click.option("--html", "form", flag_value="html", help="A page that stands by itself.  [the default]")
@click.option("--pdf", "form", flag_value="pdf", help="A PDF; the ending .pdf of --output also stands for it.")
@click.option(
    "--notice", "form", flag_value="notice", help="Instead, the notice to the author, in the story's language."
)
@click.option("-o", "--output", default="-", metavar="PATH", help="A file, or s3://BUCKET/KEY; - is stdout.")
def case(config: "Config", story: str, form: Form | None, output: str) -> None:
    """Write the case file of a story, or the notice to its author.

    The file has the sources, the copied passages, the dates and the verdicts, on at most three pages and an appendix.
    """
    from neardup.moderation.case_file.render import check_pdf

    target = output_target(output)
    chosen = form or ("pdf" if output.lower().endswith(".pdf") else "html")
    if chosen == "pdf":
        check_pdf()
    with console.show_waiting("case"):
        run_async(lambda _: _write_case(config, story, chosen, target))
    if target is not None:
        click.echo(f"{target}", err=True)


async def _write_case(config: "Config", story: str, form: Form, target: "Target | None") -> None:
    import asyncio

    from neardup.app import open_readers
    from neardup.ledger import marked_stories, read, snapshot, translate_errors
    from neardup.moderation.case_file.content import case_file, case_record
    from neardup.moderation.export.destination import write_to_target
    from neardup.query.compare import load_story

    with closing(read(config.ledger.path)) as db, translate_errors(config.ledger.path), snapshot(db):
        number = story_id(story)
        record = case_record(db, number)
        if record is None:
            raise marked_stories.without_fingerprint(db, number, story)
    async with aclosing(open_readers(config)) as pool:

        async def load(known: Mapping[str, Any]) -> "LoadedStory | UnreadableStory":
            return await load_story(pool, known)

        found = await case_file(record, config, load)
    content = await asyncio.to_thread(_content, config, found, form)
    await write_to_target(target, config.content, lambda file: file.write_bytes(content))


def _content(config: "Config", found: "CaseFile", form: Form) -> bytes:
    from neardup.moderation.case_file.render import render_html, render_notice, render_pdf

    if form == "notice":
        return render_notice(found, config.registry).encode()
    page = render_html(found, config.registry)
    return render_pdf(page) if form == "pdf" else page.encode()


@command
@click.option("--since", metavar="TIME", help="Only what was decided or undone at or after this RFC 3339 time.")
def verdicts(config: "Config", since: str | None) -> None:
    """Print every verdict and undo, in the order of time, as JSON lines."""
    from neardup.ledger import read, snapshot, translate_errors, verdict_log

    after = parse_time_option("--since", since)
    with closing(read(config.ledger.path)) as db, translate_errors(config.ledger.path), snapshot(db):
        for event in verdict_log.since(db, after):
            click.echo(verdict_log.as_json(event))
