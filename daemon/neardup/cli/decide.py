"""The commands of moderators: `export`, `case`, `verdicts`, `review`, `suspects`."""

import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing, nullcontext
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click
from click.core import ParameterSource
from msgspec import to_builtins

from neardup.cli import console
from neardup.cli.command import (
    find_language,
    json_option,
    make_command,
    parse_story_id,
    parse_time_option,
    print_json,
    refuse_missing_folder,
    run_async,
    split_words,
)
from neardup.core.verify import tiers
from neardup.core.verify.clusters import POLICIES
from neardup.errors import Misuse
from neardup.option_values import FORMATS
from neardup.records import STATUSES, MarkReason, format_count, format_readable_time, format_time

if TYPE_CHECKING:
    import asyncio

    from neardup.config import Config
    from neardup.core.verify.clusters import Policy
    from neardup.ledger.flags import Selection
    from neardup.ledger.marks import MarkedAuthor, MarkedStory
    from neardup.moderation.case_file import CaseFile
    from neardup.option_values import Format, Target
    from neardup.query.compare import LoadedStory, UnreadableStory


Form = Literal["html", "pdf", "notice"]

SHOWN = 50  # suspects
FILTERS = ("kinds", "author", "story", "cluster", "catalogue", "only_new")  # of OPTIONS, as a selection has them


def parse_target(output: str) -> "Target | None":
    """What --output names; None for -, which is stdout.  Raises Misuse."""
    from neardup.option_values import read_target

    try:
        target = None if output == "-" else read_target(output)
    except ValueError as error:
        raise Misuse(f"--output: {error}") from None
    if isinstance(target, Path):
        refuse_missing_folder("--output", target)
    return target


OPTIONS = (
    click.option(
        "--language",
        "languages",
        multiple=True,
        metavar="L",
        help="A name or an ISO code, such as HINDI or hi; may be repeated.",
    ),
    click.option(
        "--kind",
        "kinds",
        multiple=True,
        type=click.Choice((*tiers.list_kinds(), *tiers.list_kinds_of_meaning())),
        help="May be repeated; translated and retold pairs are in no export of other kinds.",
    ),
    click.option(
        "--status",
        "statuses",
        multiple=True,
        type=click.Choice([*STATUSES, "withdrawn"]),
        help="May be repeated.  [open]",
    ),
    click.option("--author", metavar="ID", help="Pairs with a story by this author."),
    click.option("--story", type=parse_story_id, metavar="ID", help="Pairs that contain this story."),
    click.option("--cluster", type=parse_story_id, metavar="ID", help="Pairs of the cluster that contains this story."),
    click.option("--catalogue", metavar="NAME", help="Copies of the works of this catalogue of [reference]."),
    click.option("--since", metavar="TIME", help="Pairs flagged at or after this RFC 3339 time."),
    click.option("--until", metavar="TIME", help="Pairs flagged before this time."),
    click.option(
        "--min-similarity",
        type=click.FloatRange(0, 1),
        help="Pairs of at least this similarity; with --by story, stories of which this share stands in earlier ones.",
    ),
    click.option(
        "--same-author",
        is_flag=True,
        help="Also partial copies and passages between stories of one author, which detection.same_author hides.",
    ),
    click.option("--new", "only_new", is_flag=True, help="Only flags that no export has written before."),
)


def takes_flag_selection(function: Callable[..., None]) -> Callable[..., None]:
    """Add OPTIONS to a command; its function receives them as one `selection`, by default all open flags."""

    @wraps(function)
    def with_selection(
        config: "Config",
        *args: Any,
        languages: tuple[str, ...],
        statuses: tuple[str, ...],
        since: str | None,
        until: str | None,
        min_similarity: float | None,
        same_author: bool,
        **options: Any,
    ) -> None:
        from neardup.ledger.flags import Selection

        after, before = parse_time_option("--since", since), parse_time_option("--until", until)
        if after is not None and before is not None and after >= before:
            raise Misuse("--since must be before --until")
        selection = Selection(
            languages=tuple(find_language(config.registry, name) for name in languages),
            statuses=statuses or ("open",),
            since=after,
            until=before,
            similarity=min_similarity,
            same_author=same_author or config.detection.same_author == "keep",
            **{name: options.pop(name) for name in FILTERS},
        )
        function(config, *args, selection=selection, **options)

    for option in reversed(OPTIONS):
        with_selection = option(with_selection)
    return with_selection


@make_command
@click.option(
    "--format", "file_format", type=click.Choice(FORMATS), help="Format.  [by the output's ending, or export.format]"
)
@click.option("-o", "--output", default="-", metavar="PATH", help="A file, or s3://BUCKET/KEY; - is stdout.")
@click.option("--bom", is_flag=True, help="Begin a CSV file with a byte order mark, so that Excel reads it as UTF-8.")
@click.option(
    "--by",
    type=click.Choice(["pair", "story"]),
    default="pair",
    help="A row a pair, or a row a story that copies by a selected pair, the most similar first.  [pair]",
)
@click.option(
    "--keep",
    type=click.Choice(POLICIES),
    help="Instead, a row a member of a cluster, with whether to keep it: one of each cluster, or the works.",
)
@click.option(
    "--fingerprints",
    type=click.Path(path_type=Path),
    metavar="PATH",
    help="Write the fingerprints of all stories to this Parquet file instead; no other option goes with it.",
)
@takes_flag_selection
def export(
    config: "Config",
    file_format: "Format | None",
    output: str,
    by: Literal["pair", "story"],
    selection: "Selection",
    *,
    bom: bool,
    keep: "Policy | None",
    fingerprints: Path | None,
) -> None:
    """Write the flagged pairs, the most severe first, or the stories that copy.

    Only an export of pairs counts for --new.
    """
    from neardup.app import open_readers
    from neardup.ledger import flags, meaning_flags, now_ms, open_snapshot, open_to_write, permissions
    from neardup.moderation.export.tables import is_of_meaning
    from neardup.moderation.export.write import ExportOptions
    from neardup.moderation.export.write import export as write_export
    from neardup.option_values import explain_ending, format_of

    if fingerprints is not None:
        _write_fingerprints(config, fingerprints)
        return
    target = parse_target(output)
    if target and not file_format and (problem := explain_ending(target)):
        raise Misuse(f"--output: {problem}, or name it with --format")
    chosen = file_format or (format_of(target) if target else None) or config.export.format or "csv"
    if bom and chosen != "csv":
        raise Misuse(f"--bom: only CSV files have a byte order mark, not {chosen}")
    if keep and by == "story":
        raise Misuse("--keep and --by story exclude each other")
    options = ExportOptions(chosen, selection, bom=bom, by="member" if keep else by, keep=keep or "earliest")
    with open_snapshot(config.ledger.path) as db:
        is_due = permissions.is_due(db, now_ms())  # a term may have ended since the last run
    if is_due:
        with open_to_write(config.ledger.path) as db:
            permissions.refresh(db, now_ms())
    is_shown = target is None and sys.stdout.isatty()  # rows on the terminal show the progress themselves
    with nullcontext() if is_shown else console.show_waiting("export"):
        written = run_async(lambda _: write_export(config, lambda: open_readers(config), target, options))
    if target is not None:
        names = ("flag", "flags") if options.by == "pair" else ("story", "stories")
        click.echo(f"{format_count(len(written), *names)}: {target}", err=True)
    if options.by != "pair":
        return
    mark_exported = meaning_flags.mark_exported if is_of_meaning(selection) else flags.mark_exported
    with open_to_write(config.ledger.path) as db:
        mark_exported(db, written)


def _write_fingerprints(config: "Config", path: Path) -> None:
    from neardup.ops.fingerprints import export_fingerprints

    context = click.get_current_context()
    given = {name for name in context.params if context.get_parameter_source(name) is ParameterSource.COMMANDLINE}
    if given - {"fingerprints", "config_path"}:
        raise Misuse("--fingerprints: no other option goes with it")
    refuse_missing_folder("--fingerprints", path)
    with console.show_waiting("export"):
        written = run_async(lambda _: export_fingerprints(config, path))
    click.echo(f"{format_count(written, 'story', 'stories')}: {path}", err=True)


@make_command
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
    from neardup.moderation.case_file import check_pdf

    target = parse_target(output)
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
    from neardup.ledger import marks, open_snapshot
    from neardup.moderation.case_file import make_case_file, read_case_record
    from neardup.moderation.export.target import write_to_target
    from neardup.query.compare import load_story

    with open_snapshot(config.ledger.path) as db:
        number = parse_story_id(story)
        record = read_case_record(db, number)
        if record is None:
            raise marks.explain_no_fingerprint(db, number, story)
    async with aclosing(open_readers(config)) as pool:

        async def load(known: Mapping[str, Any]) -> "LoadedStory | UnreadableStory":
            return await load_story(pool, known)

        found = await make_case_file(record, config, load)
    content = await asyncio.to_thread(_write_content, config, found, form)
    await write_to_target(target, config.content, lambda file: file.write_bytes(content))


def _write_content(config: "Config", found: "CaseFile", form: Form) -> bytes:
    from neardup.moderation.case_file import render_html, render_notice, render_pdf

    if form == "notice":
        return render_notice(found, config.registry).encode()
    page = render_html(found, config.registry)
    return render_pdf(page) if form == "pdf" else page.encode()


@make_command
@click.option("--since", metavar="TIME", help="Only what was decided or undone at or after this RFC 3339 time.")
def verdicts(config: "Config", since: str | None) -> None:
    """Print every verdict and undo, in the order of time, as JSON lines."""
    from neardup.ledger import open_snapshot
    from neardup.ledger.verdicts import list_events_since

    after = parse_time_option("--since", since)
    with open_snapshot(config.ledger.path) as db:
        for event in list_events_since(db, after):
            print_json(event)


@make_command
@click.option("--listen", metavar="HOST:PORT", help="Address to listen on.  [review.listen]")
@click.option(
    "--new-token", "name", metavar="NAME", help="Add a moderator to review.moderators, print the token, exit."
)
@click.option("--rights", metavar="LIST", help="Rights of the new moderator, from read,decide.  [decide]")
@click.option("--languages", metavar="LIST", help="Languages that the new moderator decides, such as hi,ta.  [all]")
def review(config: "Config", listen: str | None, name: str | None, rights: str | None, languages: str | None) -> None:
    """Serve the review desk, a web page where moderators decide the flagged cases, until SIGTERM."""
    from neardup.app import open_desk
    from neardup.config.section import check_address
    from neardup.moderation.desk.app import serve

    if name is not None:
        click.echo(_add_moderator(config, name, rights, languages))
        return
    if rights is not None or languages is not None:
        raise Misuse("--rights, --languages: only --new-token takes them")
    try:
        listen_address = check_address(listen) if listen else config.review.listen
    except ValueError as error:
        raise Misuse(f"--listen: {error}") from None

    async def show(stop: "asyncio.Event") -> None:
        async with open_desk(config, listen_address) as desk:
            await serve(desk, listen_address, stop)

    run_async(show, finishes_queued_work=True)


def _add_moderator(config: "Config", name: str, rights: str | None, languages: str | None) -> str:
    """Add a moderator to the file of the configuration; returns the token."""
    from neardup.moderation.desk import moderators

    if config.review.moderators is None:
        raise Misuse("--new-token: name the file of the moderators first, as review.moderators")
    chosen = moderators.parse_rights(split_words(rights or moderators.Right.DECIDE))
    spoken = moderators.parse_languages(split_words(languages or ""), config.registry)
    return moderators.add_moderator(config.review.moderators, moderators.Moderator(name, "", chosen, spoken))


@make_command
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
    from neardup.cli import output
    from neardup.ledger import marks, open_snapshot
    from neardup.ledger.marks import MarkFilter

    choice = MarkFilter(reason, tuple(find_language(config.registry, name) for name in names), author)
    most = limit or (-1 if as_json else SHOWN)
    with open_snapshot(config.ledger.path) as db, console.show_waiting("suspects"):
        total, reasons = marks.count_stories(db, choice)
        stories = marks.list_stories(db, choice, most) if by == "story" else []
        authors = marks.list_authors(db, choice, most) if by == "author" else []
    if as_json:
        rows = {"suspects": list(map(_record, stories))} if by == "story" else {"authors": authors}
        print_json({"stories": total, "by_reason": reasons, **rows})
    elif total:
        count = ", ".join(f"{name} {n:,}" for name, n in reasons.items())
        output.out.print(f"{total:,}  ({count})")
        if by == "story":
            _show_stories(stories)
        else:
            _show_authors(authors)
        if by == "story" and total > len(stories):
            output.out.print(f"and {total - len(stories):,} more; --json prints all")
    else:
        output.out.print("No suspects.")


def _record(story: "MarkedStory") -> dict[str, object]:
    """A story as a JSON object."""
    return {**to_builtins(story), "marked_at": format_time(story.marked_at)}


def _show_stories(stories: "Sequence[MarkedStory]") -> None:
    from neardup.cli import output
    from neardup.ledger import marks
    from neardup.moderation.evidence.terminal import make_plain

    rows = []
    for story in stories:
        reasons = marks.describe_marks(story.marks)
        marked_at = format_readable_time(format_time(story.marked_at))
        cells = (story.story_id, story.language, story.author_id or "", story.title, reasons, marked_at)
        rows.append([make_plain(str(cell)) for cell in cells])
    output.show_rows(("story", "language", "author", "title", "reasons", "marked at"), rows)


def _show_authors(authors: "Sequence[MarkedAuthor]") -> None:
    from neardup.cli import output
    from neardup.moderation.evidence.terminal import make_plain

    rows = []
    for author in authors:
        name = "not known" if author.author_id is None else make_plain(author.author_id)
        rows.append((name, author.stories, output.format_reasons(Counter(author.reasons))))
    output.show_rows(("author", "stories", "reasons"), rows)
