"""The commands of who may use whose text, and who complains: `permit`, `complaints`."""

import csv
from collections.abc import Iterator, Mapping, Sequence
from getpass import getuser
from pathlib import Path
from typing import TYPE_CHECKING

import click

from neardup.cli.command import json_option, make_command, print_answer, print_json, run_async
from neardup.errors import Fatal, Misuse
from neardup.records import format_count, format_readable_time, format_time

if TYPE_CHECKING:
    from neardup.config import Config
    from neardup.ledger.complaints import Complaint

COMPLAINT_COLUMNS = ("story_id", "complainant", "contact", "statement")
MORE_COMPLAINT_COLUMNS = ("original_id", "original_text", "author_id")


@make_command
@click.argument("file", required=False, type=click.Path(path_type=Path), metavar="[FILE.csv]")
@click.option("--by", "granted_by", metavar="AUTHOR", help="The author who permits the use of all of their texts.")
@click.option("--story", "story_id", metavar="ID", help="Only of this story of --by.")
@click.option("--serial", metavar="NAME", help="Only of this serial of --by: its series id, or its title.")
@click.option("--catalogue", metavar="NAME", help="Instead, all works of this catalogue of [reference].")
@click.option("--to", "granted_to", metavar="AUTHOR", help="Who may use it.  [everyone]")
@click.option("--licence", metavar="TEXT", help="The licence, such as CC BY 4.0.")
@click.option("--since", metavar="TIME", help="From this RFC 3339 time on.")
@click.option("--until", metavar="TIME", help="Before this time.")
@click.option("--note", metavar="TEXT", help="What else to keep of it.")
@click.option("--revoke", type=click.IntRange(1), metavar="N", help="End permission N now; it stays on record.")
@click.option("--as", "name", metavar="NAME", help="Who enters or revokes it.  [the user of this machine]")
@json_option
def permit(
    config: "Config", *, file: Path | None, revoke: int | None, name: str | None, as_json: bool, **fields: str | None
) -> None:
    """Enter or revoke permissions: who may use whose text.

    Without arguments, those that have not ended are listed.

    A copy that is permitted opens no case.  FILE.csv has the columns granted_by, story_id, serial, catalogue,
    granted_to, licence, since, until and note, as far as they are needed; nothing is stored of a file with a wrong row.
    """
    from neardup.ledger import open_to_write, permissions
    from neardup.moderation.permissions import import_csv, parse_grant

    choices = [file is not None, revoke is not None, any(value is not None for value in fields.values())]
    if sum(choices) > 1:
        raise Misuse("a file, --revoke and the options of one permission exclude each other")
    if not any(choices):
        _list_permissions(config, as_json=as_json)
        return
    who = name or getuser()
    with open_to_write(config.ledger.path) as db:
        if file is not None:
            click.echo(f"{format_count(import_csv(db, file, who), 'permission', 'permissions')} entered", err=True)
        elif revoke is not None:
            permissions.revoke(db, revoke, who)
            click.echo(f"permission {revoke} revoked", err=True)
        else:
            click.echo(f"permission {permissions.enter(db, parse_grant(fields), who)} entered", err=True)


def _list_permissions(config: "Config", *, as_json: bool) -> None:
    from neardup.cli import output
    from neardup.ledger import now_ms, open_snapshot
    from neardup.ledger.permissions import PermissionFilter, select
    from neardup.moderation.evidence.terminal import make_plain

    with open_snapshot(config.ledger.path) as db:
        rows = select(db, PermissionFilter(current=True), now_ms())
    for row in rows:
        for time in ("since", "until", "entered_at", "revoked_at"):
            row[time] = format_time(row[time])
    if as_json:
        print_json({"permissions": rows})
    elif rows:
        shown = list[Iterator[str]]()
        for row in rows:
            what = f"serial {row['serial']}" if row["serial"] is not None else "all texts"
            if row["story_id"] is not None:
                what = f"story {row['story_id']}"
            term = " ".join(f"{word} {row[word]}" for word in ("since", "until") if row[word])
            by, to = row["granted_by"] or row["catalogue"], row["granted_to"] or "everyone"
            cells = (str(row["permission_id"]), by, what, to, row["licence"] or "", term, row["entered_by"])
            shown.append(map(make_plain, cells))
        output.show_rows(("number", "by", "what", "to", "licence", "term", "entered by"), shown)
    else:
        output.out.print("No permissions.")


@make_command
@click.option(
    "--add", "path", type=click.Path(path_type=Path), metavar="FILE", help="Record the complaints of a CSV file."
)
@click.option("--closed", is_flag=True, help="List the closed ones, the last one first.")
@json_option
def complaints_(config: "Config", path: Path | None, *, closed: bool, as_json: bool) -> None:
    """List the open complaints, the next deadline first, or record those of a CSV file.

    The file has the columns story_id, complainant, contact and statement, and may have original_id, original_text and
    author_id.  A row that is refused is named, and the others are recorded.
    """
    from neardup.ledger import complaints, open_snapshot

    if path is not None:
        if refused := run_async(lambda _: _add_complaints(config, _read_complaints(path))):
            raise Fatal(f"--add: {format_count(refused, 'row', 'rows')} of {path} refused")
        return
    with open_snapshot(config.ledger.path) as db:
        listed = complaints.list_complaints(db, closed=closed)
    lines = [f"{found.number}  story {found.shown}  {_describe_end(found)}" for found in listed]
    sentence = "\n".join(lines) or f"No {'closed' if closed else 'open'} complaints."
    print_answer(list(map(_make_complaint_record, listed)), sentence, as_json=as_json)


def _describe_end(complaint: "Complaint") -> str:
    due = format_readable_time(format_time(complaint.due_at))
    return f"due {due}" if complaint.is_open else f"{complaint.outcome}"


def _make_complaint_record(complaint: "Complaint") -> dict[str, object]:
    """A complaint as a JSON object, without the complainant."""
    times = {name: format_time(getattr(complaint, name)) for name in ("received_at", "due_at", "closed_at")}
    shown = {"story_id": complaint.shown, "original_id": complaint.original_shown}
    names = ("number", "statement", "evidence", "outcome")
    return {name: getattr(complaint, name) for name in names} | shown | times


def _read_complaints(path: Path) -> list[tuple[int, dict[str, str]]]:
    """The rows of a CSV file, each with the number of its last line.  Raises Misuse."""
    from neardup.source.documents import LONGEST_CELL

    csv.field_size_limit(LONGEST_CELL)  # an original_text may be a book
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file, restval="", strict=True)
            rows, columns = [(reader.line_num, row) for row in reader], reader.fieldnames or []
    except OSError as error:
        raise Misuse(f"--add: cannot read {path}: {error.strerror}") from None
    except (csv.Error, UnicodeDecodeError) as error:
        raise Misuse(f"--add: {path} is no CSV in UTF-8: {error}") from None
    if missing := [name for name in COMPLAINT_COLUMNS if name not in columns]:
        raise Misuse(f"--add: {path} has no column {', '.join(missing)}")
    if unknown := [name for name in columns if name not in COMPLAINT_COLUMNS + MORE_COMPLAINT_COLUMNS]:
        raise Misuse(f"--add: {path} has an unknown column {', '.join(unknown)}")
    if any(None in row for _, row in rows):
        raise Misuse(f"--add: {path} has a row with more cells than columns")
    return rows


async def _add_complaints(config: "Config", rows: "Sequence[tuple[int, Mapping[str, str]]]") -> int:
    """Record each row; returns how many are refused."""
    from neardup.app import open_complaints
    from neardup.query.complaints import ComplaintRefused, GivenComplaint, receive
    from neardup.source.parse import parse_id

    refused = 0
    async with open_complaints(config) as parts:
        for line, row in rows:
            story, complainant, contact, statement = (row[name] for name in COMPLAINT_COLUMNS)
            original, text, author = (row.get(name) or None for name in MORE_COMPLAINT_COLUMNS)
            try:
                original_id = None if original is None else parse_id(original)
                given = GivenComplaint(parse_id(story), complainant, contact, statement, original_id, text, author)
                made = await receive(parts, given)
            except (ComplaintRefused, ValueError) as error:
                refused += 1
                click.echo(f"line {line}: {error}", err=True)
            else:
                click.echo(
                    f"line {line}: complaint {made.number}, due {format_readable_time(format_time(made.due_at))}"
                )
    return refused
