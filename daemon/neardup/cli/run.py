"""The commands that work through stories until they are done or stopped.

`run` (the daemon), `serve`, `daily`, `backfill`, `sweep`, `retry`, `embed`; `dead-letters` lists what `retry` takes.
"""

from collections import Counter
from contextlib import AsyncExitStack, closing, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from neardup.cli import console
from neardup.cli.command import (
    exit_if_interrupted,
    json_option,
    make_command,
    parse_story_id,
    parse_time_option,
    print_answer,
    print_summary,
    run_async,
    split_words,
)
from neardup.errors import Misuse, NeardupError
from neardup.option_values import DEFAULT_LISTEN, Right
from neardup.records import DEAD_LETTER_REASONS, format_count, format_time
from neardup.telemetry.log import log

if TYPE_CHECKING:
    import asyncio
    import sqlite3

    from neardup.app import App
    from neardup.config import Config
    from neardup.meaning.embedding import EmbeddingSummary, ImportSummary
    from neardup.pipeline.run_lifecycle import Hook
    from neardup.pipeline.summary import RunSummary, Summary, SweepSummary, Watch

SHOWN = 50  # dead letters


@make_command
def run(config: "Config") -> None:
    """Run as a daemon until SIGTERM: daily runs on run.schedule, /metrics and /healthz.

    If serve.listen is set, it serves the check before publication as well.
    """
    from neardup.app import make_http_service, open_posting_app
    from neardup.ops.service import Service

    async def keep_running(stop: "asyncio.Event") -> None:
        async with AsyncExitStack() as stack:
            if config.serve.listen is not None:
                from neardup.serve.app import serving

                await stack.enter_async_context(serving(make_http_service(config, stop), config.serve.listen))
            open_app = partial(open_posting_app, config)
            await Service(
                config.ledger.path, config.metrics.listen, config.run.schedule, open_app, stop, hooks=make_self_checks
            ).run()

    run_async(keep_running, finishes_queued_work=True)


@partial(make_command, reads_pages=True)
@click.option(
    "--since", metavar="TIME", help="List the stories updated since this RFC 3339 time, instead of the watermark."
)
@json_option
def daily(config: "Config", since: str | None, as_json: bool) -> None:
    """Run over the stories updated since the watermark."""
    run_and_print(config, "daily", as_json, since=parse_time_option("--since", since))


@partial(make_command, reads_pages=True)
@click.option("--refingerprint", is_flag=True, help="Delete every fingerprint first and make them again.")
@click.option("--fresh", is_flag=True, help="Build the index at the end, then sweep; the fastest first backfill.")
@json_option
def backfill(config: "Config", refingerprint: bool, fresh: bool, as_json: bool) -> None:
    """Run over every story; an interrupted backfill resumes."""
    run_and_print(config, "backfill", as_json, refingerprint=refingerprint, fresh=fresh)


def run_and_print(config: "Config", name: str, as_json: bool, **options: Any) -> None:
    """Do one run, with the options of `run_once`, and print its summary and its new flags."""
    from neardup.app import open_app, run_once
    from neardup.app import sweep as sweep_ledger
    from neardup.cli import output
    from neardup.ledger import runs
    from neardup.telemetry.metrics import serve_metrics

    async def do_run(stop: "asyncio.Event") -> "tuple[RunSummary, list[dict[str, Any]]]":
        async with open_app(config) as app:
            serve_metrics(config.metrics.listen, name)
            with console.show_progress(name) as watch:
                hooks = make_self_checks(app, watch) if name == "daily" else []
                summary = await run_once(app, name, stop, watch, hooks=hooks, **options)
            if name == "backfill" and summary.status == "done" and await app.ledger.do(runs.owes_sweep):
                with console.show_progress("sweep") as watch:
                    swept = await sweep_ledger(config, app.ledger, stop, watch)
                summary.counts.flagged.update(swept.flagged)
                summary.warnings.update(swept.warnings)
                summary.seconds += swept.seconds
                summary.status = swept.status
            return summary, await app.ledger.do(_read_flagged, config, summary.started_at)

    summary, new = run_async(do_run, finishes_queued_work=True)

    def show() -> None:
        output.show_run(summary)
        _show_flags(config, new, summary, summary.counts.flagged.total())

    print_summary(summary, show, as_json=as_json)


@make_command
@json_option
def sweep(config: "Config", as_json: bool) -> None:
    """Flag the pairs among fingerprinted stories; an interrupted sweep resumes."""
    from neardup.app import open_ledger
    from neardup.app import sweep as sweep_ledger
    from neardup.cli import output
    from neardup.telemetry.metrics import serve_metrics

    async def do_sweep(stop: "asyncio.Event") -> "tuple[SweepSummary, list[dict[str, Any]]]":
        with open_ledger(config) as ledger:
            serve_metrics(config.metrics.listen, "sweep")
            with console.show_progress("sweep") as watch:
                swept = await sweep_ledger(config, ledger, stop, watch)
            return swept, await ledger.do(_read_flagged, config, swept.started_at)

    swept, new = run_async(do_sweep, finishes_queued_work=True)

    def show() -> None:
        output.show_sweep(swept)
        _show_flags(config, new, swept, swept.flagged.total())

    print_summary(swept, show, as_json=as_json)


def make_self_checks(app: "App", watch: "Watch | None" = None) -> "list[Hook]":
    """The hooks by which a daily run measures the index; `watch` is called when they begin."""
    from neardup.insights.self_checks import make_hook
    from neardup.pipeline.summary import ignore_progress

    if not app.config.run.canaries:
        return []
    return [make_hook(app, watch or ignore_progress)]


def _show_flags(config: "Config", new: list[dict[str, Any]], summary: "Summary", total: int) -> None:
    from neardup.cli import output

    output.show_flags(new, total)
    if config.export.path and "export" not in summary.warnings:
        click.echo(f"\nOpen flags: {config.export.path}")


def _read_flagged(db: "sqlite3.Connection", config: "Config", since: int) -> list[dict[str, Any]]:
    from neardup.cli import output
    from neardup.ledger import flags, snapshot, story_rows
    from neardup.ledger.flags import Selection
    from neardup.moderation.export.tables import PAIRS, export_row

    with snapshot(db):
        cluster_of = flags.map_clusters(db)
        new = Selection(since=since, same_author=config.detection.same_author == "keep")
        rows = (export_row(row, cluster_of) for row in flags.select(db, new, limit=output.SHOWN_FLAGS))
        return list(story_rows.show_ids(db, rows, PAIRS.story_ids))


def _list_keys(value: str) -> list[str]:
    """The keys that a dead letter may have which is shown with this one.

    That of a row is shown as it is, and that of a story by its listed id, followed by the path of a further page.  A
    name and a path may both contain what stands between them.
    """
    from neardup.ledger.dead_letters import PAGE_OF
    from neardup.source.parse import ROW_KEY

    if value.startswith(ROW_KEY):
        return [value]
    parts, keys = [(value[:n], value[n:]) for n in range(1, len(value)) if value[n] == PAGE_OF], list[str]()
    for listed, path in [(value, ""), *parts]:
        with suppress(click.BadParameter):  # a path is longer than a name may be
            keys.append(f"{parse_story_id(listed)}{path}")
    return keys or [str(parse_story_id(value))]


keys_argument = click.argument("keys", nargs=-1, metavar="[KEY]...")
reason_option = click.option(
    "--reason", type=click.Choice(DEAD_LETTER_REASONS), help="Only dead letters with this reason."
)

webhooks_option = click.option(
    "--webhooks", is_flag=True, help="The events that no webhook took in place of stories; a KEY is the id of an event."
)


@make_command
@keys_argument
@reason_option
@webhooks_option
@click.option("--drop", is_flag=True, help="Delete the selected dead letters; they will not be retried.")
@json_option
def dead_letters_(
    config: "Config", *, keys: tuple[str, ...], reason: str | None, webhooks: bool, drop: bool, as_json: bool
) -> None:
    """List the stories and rows that could not be processed, or those with the given KEYs (a story's key is its id)."""
    from neardup.cli import output
    from neardup.ledger import dead_letters, open_snapshot, open_to_write
    from neardup.ledger.dead_letters import DeadLetterFilter

    if webhooks:
        _list_dead_events(config, keys, reason, drop=drop, as_json=as_json)
        return
    choice = DeadLetterFilter(reason, tuple(key for shown in keys for key in _list_keys(shown)))
    if drop:
        if not keys and reason is None:
            raise Misuse("--drop needs KEYs or --reason")
        with open_to_write(config.ledger.path) as db:
            dropped = dead_letters.drop(db, choice)
        deleted = format_count(dropped, "dead letter was deleted", "dead letters were deleted")
        print_answer({"dropped": dropped}, deleted, as_json=as_json)
        return
    with open_snapshot(config.ledger.path) as db:
        counts = dead_letters.count_by_reason(db, choice)
        shown = dead_letters.select(db, choice, limit=-1 if as_json else SHOWN)
    for dead_letter in shown:
        dead_letter |= {name: format_time(dead_letter[name]) for name in ("first_at", "last_at")}
    facts = {"by_reason": counts, "dead_letters": shown}
    print_answer(facts, lambda: output.show_dead_letters(counts, shown), as_json=as_json)


@make_command
@keys_argument
@reason_option
@webhooks_option
@json_option
def retry(config: "Config", *, keys: tuple[str, ...], reason: str | None, webhooks: bool, as_json: bool) -> None:
    """Process the stories of dead letters again: all but those in quarantine, or only the selected ones."""
    from neardup.ledger import dead_letters, open_to_write
    from neardup.ledger.dead_letters import DeadLetterFilter

    if webhooks:
        _retry_events(config, keys, reason, as_json=as_json)
        return
    keys_of = {shown: _list_keys(shown) for shown in keys}
    with open_to_write(config.ledger.path) as db:
        dead_letters.refuse_unknown(db, keys_of)
    chosen = DeadLetterFilter(reason, tuple(key for possible in keys_of.values() for key in possible))
    run_and_print(config, "retry", as_json, dead_letters=chosen)


def _read_dead_events(
    config: "Config", keys: tuple[str, ...], reason: str | None, *, to_write: bool
) -> list[dict[str, Any]]:
    """The dead events of webhooks with these keys, all without any, each with its line.  Raises Misuse.

    A ledger of an earlier schema is upgraded if the caller is going `to_write`, else refused.
    """
    from neardup.ledger import open_snapshot, open_to_write, webhook_events
    from neardup.moderation.webhook import format_event

    if reason is not None:
        raise Misuse("--webhooks and --reason exclude each other")
    with (open_to_write if to_write else open_snapshot)(config.ledger.path) as db:
        found = webhook_events.list_dead(db, keys)
    if unknown := set(keys).difference(event["key"] for event in found):
        raise Misuse(f"no dead event {min(unknown)}")
    return [{**event, "text": format_event(event["event"])} for event in found]


def _list_dead_events(
    config: "Config", keys: tuple[str, ...], reason: str | None, *, drop: bool, as_json: bool
) -> None:
    from neardup.cli import output
    from neardup.ledger import open_to_write, webhook_events

    found = _read_dead_events(config, keys, reason, to_write=drop)
    if drop:
        if not keys:
            raise Misuse("--drop needs KEYs")
        with open_to_write(config.ledger.path) as db:
            dropped = webhook_events.drop_dead(db, keys)
        deleted = format_count(dropped, "dead event was deleted", "dead events were deleted")
        print_answer({"dropped": dropped}, deleted, as_json=as_json)
    else:
        show = partial(output.show_dead_events, found[:SHOWN], len(found))
        print_answer({"dead_events": found}, show, as_json=as_json)


def _retry_events(config: "Config", keys: tuple[str, ...], reason: str | None, *, as_json: bool) -> None:
    from neardup.ledger import Ledger
    from neardup.moderation.webhook import post_dead_events

    _read_dead_events(config, keys, reason, to_write=True)
    with closing(Ledger(config.ledger.path)) as ledger:
        tally = run_async(lambda _: post_dead_events(ledger.do, config, keys))
    waiting = f"; {format_count(tally.waiting, 'waits', 'wait')} for the next attempt" if tally.waiting else ""
    delivered = format_count(tally.delivered, "event was delivered", "events were delivered")
    print_answer(tally._asdict(), f"{delivered}{waiting}", as_json=as_json)


@make_command
@click.option("--listen", metavar="HOST:PORT", help=f"Address to listen on.  [serve.listen, or {DEFAULT_LISTEN}]")
@click.option("--new-token", "token_name", metavar="NAME", help="Add a token to serve.tokens, print it, and exit.")
@click.option("--new-author-key", is_flag=True, help="Make the key of serve.author_key, and exit.")
@click.option("--rights", metavar="LIST", help=f"Rights of the new token, from {','.join(Right)}.  [{Right.CHECK}]")
def serve(
    config: "Config", listen: str | None, token_name: str | None, rights: str | None, *, new_author_key: bool
) -> None:
    """Serve the check before publication over HTTP, until SIGTERM."""
    from neardup.config.section import check_address
    from neardup.serve.tokens import new_token, parse_rights

    if token_name is not None:
        if config.serve.tokens is None:
            raise Misuse("--new-token: name the file of the tokens first, as serve.tokens")
        chosen = parse_rights(split_words(rights or Right.CHECK))
        click.echo(new_token(config.serve.tokens, token_name, chosen))
        return
    if rights is not None:
        raise Misuse("--rights: only --new-token takes it")
    if new_author_key:
        if config.serve.author_key is None:
            raise Misuse("--new-author-key: name the file of the key first, as serve.author_key")
        from neardup.serve.tokens import make_author_key

        make_author_key(config.serve.author_key)
        return
    try:
        listen_address = check_address(listen) if listen else config.serve.listen or DEFAULT_LISTEN
    except ValueError as error:
        raise Misuse(f"--listen: {error}") from None
    from neardup.app import make_http_service
    from neardup.serve.app import serve as serve_until
    from neardup.telemetry.systemd import notify

    async def answer(stop: "asyncio.Event") -> None:
        service = make_http_service(config, stop, lambda doing: notify(f"STATUS={doing}"))
        await serve_until(service, listen_address, stop)

    run_async(answer, finishes_queued_work=True)


@make_command
@click.option("--since", metavar="TIME", help="Also the stories known since this RFC 3339 time.")
@click.option(
    "--import",
    "imported",
    type=click.Path(path_type=Path),
    metavar="PATH",
    help="Instead, import the vectors of a Parquet file, with the columns id and vectors.",
)
@json_option
def embed(config: "Config", *, since: str | None, imported: Path | None, as_json: bool) -> None:
    """Make the vectors of works and new stories, and find translated and retold copies by them.

    The vectors of a text and its translation are close.  A day takes up to meaning.core_seconds_a_day; a later call
    goes on where this one ends.
    """
    from neardup.app import open_readers
    from neardup.ledger import files
    from neardup.ledger.lock import only_one
    from neardup.meaning.embedding import embed as embed_waiting
    from neardup.meaning.embedding import import_vectors

    if since and imported:
        raise Misuse("--since and --import exclude each other")
    known_since = parse_time_option("--since", since)

    async def do_embed(stop: "asyncio.Event") -> "EmbeddingSummary | ImportSummary":
        if imported is not None:
            with console.show_waiting("embed"):
                return await import_vectors(config, open_readers, imported, stop)
        with console.show_count("embed") as report:
            done = await embed_waiting(config, open_readers, stop, known_since, report)
        await _notify(config, "stopped" if stop.is_set() else "done", done)
        return done

    with only_one(files.name_vectors_file(config.ledger.path), "embed"):
        done = run_async(do_embed, finishes_queued_work=True)
    print_answer(done, _describe(done), as_json=as_json)
    exit_if_interrupted()


async def _notify(config: "Config", status: str, done: "EmbeddingSummary") -> None:
    """Post what was found to the webhook; one that fails leaves the result as it is."""
    from neardup.moderation.webhook import notify_embedding

    try:
        await notify_embedding(config.export, status, done.search.found, config.webhook.revealed)
    except NeardupError as error:
        log.warning("the webhook failed", reason=str(error))


def _describe(done: "EmbeddingSummary | ImportSummary") -> str:
    from neardup.cli.output import format_reasons
    from neardup.core.verify.tiers import RETOLD, TRANSLATED
    from neardup.meaning.embedding import ImportSummary

    if isinstance(done, ImportSummary):
        unknown = format_count(done.unknown, "story is not known", "stories are not known")
        return f"the vectors of {format_count(done.imported, 'story', 'stories')} were imported; {unknown}"
    why = " for the budget of the next day" if done.budget_is_spent and done.waiting else ""
    embedded = format_count(done.embedded, "story", "stories")
    return (
        f"{embedded} embedded in {done.core_seconds:,.0f} core seconds, {done.unchanged:,} unchanged,"
        f" not readable: {format_reasons(Counter(done.unreadable))};"
        f" {done.removed:,} removed; {format_count(done.waiting, 'waits', 'wait')}{why};"
        f" searched for {done.search.searched:,}:"
        f" {format_count(done.search.found[TRANSLATED], 'new pair', 'new pairs')} translated,"
        f" {done.search.found[RETOLD]:,} retold"
    )
