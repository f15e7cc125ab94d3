"""Posts to webhooks, each message signed by `http.signatures` if [webhook] has secrets.

The summary of a run goes to that of [export], a few times if it must.  Verdicts, complaints and permissions, to that of
[review], and new flags of stories, to that of [webhook], are posted from the ledger's outbox until each has arrived.
"""

import asyncio
import json
import uuid
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from neardup.config import Config, Export
from neardup.errors import Fatal, Misuse, NeardupError, Transient
from neardup.http.signatures import sign
from neardup.ledger import Do, now_ms, webhook_events
from neardup.ledger.webhook_events import FLAGS, VERDICTS
from neardup.records import Kind, format_count
from neardup.retry import retry_call
from neardup.telemetry.log import log

POSTING_SECONDS = 20  # for the events that are due at the end of a command
POLL_SECONDS = 5.0  # what other processes have written is posted so late
TIMEOUT_SECONDS = 10
RETRIED_STATUSES = frozenset({408, 425, 429})  # and every 5xx


async def notify_webhook(
    section: Export, command: str, status: str, facts: dict[str, Any], secrets: Sequence[str] = ()
) -> None:
    """POST the summary of a run and its export file as JSON; does nothing if [export] sets no webhook.

    `text` is the summary in one line, which chat services display.  Raises Transient if the webhook does not answer or
    is busy, Fatal if it refuses; neither message contains the URL, which may be a secret.
    """
    url = section.webhook
    if not url:
        return
    file = str(section.path) if section.path and "export" not in facts["warnings"] else None
    body = {
        "text": format_summary(command, status, facts, file),
        "command": command,
        "status": status,
        **facts,
        "file": file,
    }
    await _post_summary(url, body, secrets)


async def notify_embedding(
    section: Export, status: str, found: Mapping[Kind, int], secrets: Sequence[str] = ()
) -> None:
    """POST how many translated and retold pairs are new, of the kinds that [export] names, if it does.

    Raises as `notify_webhook` does.
    """
    if section.webhook and section.webhook_kinds:
        facts: dict[str, Any] = {"flagged": {kind: found[kind] for kind in section.webhook_kinds}, "warnings": {}}
        body = {"text": format_summary("embed", status, facts, None), "command": "embed", "status": status, **facts}
        await _post_summary(section.webhook, body, secrets)


async def _post_summary(url: str, body: Mapping[str, Any], secrets: Sequence[str]) -> None:
    name = uuid.uuid4().hex
    await retry_call("webhook", lambda: _post("export.webhook", url, name, body, secrets))


class PostedEvents(NamedTuple):
    """How many dead events were delivered, and how many wait for their next attempt."""

    delivered: int
    waiting: int


def list_topics(config: Config) -> dict[str, tuple[str, str]]:
    """The topics of the outbox that have a webhook: each with its key in the configuration, and its URL."""
    each = {VERDICTS: ("review.webhook", config.review.webhook), FLAGS: ("webhook.flags", config.webhook.flags)}
    return {topic: (key, url) for topic, (key, url) in each.items() if url}


async def subscribe(do: Do, config: Config) -> None:
    """Have the events of the topics that have a webhook kept from now on.  Raises as `Ledger.do` does."""
    await do(webhook_events.subscribe, list_topics(config))


async def post_events(do: Do, config: Config, wake: asyncio.Event) -> None:
    """Post the events of the outbox as they are due, until cancelled; `wake` is set when there may be new ones.

    What fails is logged once, and tried again: if this ended, events would wait without a word.
    """
    failed: str | None = None
    while True:
        wake.clear()
        try:
            await post_due_events(do, config)
            failed = None
        except NeardupError as error:
            if str(error) != failed:
                log.warning("the events of webhooks cannot be read", why=str(error))
            failed = str(error)
        with suppress(TimeoutError):
            await asyncio.wait_for(wake.wait(), POLL_SECONDS)


async def post_due_events(do: Do, config: Config, clock: Callable[[], int] = now_ms) -> None:
    """Post each event that is due, once.  Raises as `Ledger.do` does."""
    topics = list_topics(config)
    while await do(webhook_events.collect_flags, same_author=config.detection.same_author == "keep"):
        pass
    while claimed := await do(webhook_events.claim, clock()):
        if claimed.topic not in topics:  # of another configuration, whose process posts what is due
            return
        key, url = topics[claimed.topic]
        body = {"text": format_event(claimed.event), **claimed.event}
        try:
            await _post(key, url, claimed.name, body, config.webhook.revealed)
        except NeardupError as error:
            if await do(webhook_events.postpone, claimed, str(error), clock()):
                log.warning("a webhook failed", event_id=claimed.name, attempt=claimed.attempt, why=str(error))
            else:
                log.error("an event of a webhook is dead", event_id=claimed.name, why=str(error))
        else:
            await do(webhook_events.drop, claimed)


async def post_for_a_while(do: Do, config: Config) -> None:
    """Post the events that are due, for POSTING_SECONDS at most: the next process that posts goes on with the rest."""
    with suppress(TimeoutError):
        async with asyncio.timeout(POSTING_SECONDS):
            await post_due_events(do, config)


async def post_dead_events(do: Do, config: Config, keys: Collection[str]) -> PostedEvents:
    """Post dead events again, all or those with these keys; what is not delivered now waits as a new event does.

    Raises Misuse without a webhook, and as `Ledger.do` does.
    """
    if not list_topics(config):
        raise Misuse("no webhook is set: neither webhook.flags nor review.webhook")
    revived = await do(webhook_events.revive, keys, now_ms())
    await post_for_a_while(do, config)
    waiting = await do(webhook_events.count_kept, revived)
    return PostedEvents(len(revived) - waiting, waiting)


def format_event(event: Mapping[str, Any]) -> str:
    """An event in one line, which chat services display."""
    return LINES[event["event"]](event)


def format_flags(event: Mapping[str, Any]) -> str:
    """`neardup: story 7 has 3 new flags (near, passage), similarity 62 %`."""
    matches = event["matches"]
    kinds = ", ".join(dict.fromkeys(match["kind"] for match in matches))
    flags = format_count(len(matches), "new flag", "new flags")
    return f"neardup: story {event['story_id']} has {flags} ({kinds}), similarity {event['similarity']:.0%}"


def format_verdict(event: Mapping[str, Any]) -> str:
    """`neardup: Asha decided plagiarism, 3 pairs of case 5`, or that Asha undid it."""
    number = len(event["pairs"])
    pairs = format_count(number, "pair", "pairs")
    about = "".join(f" of case {case}" for case in event["cases"][:1])
    if len(event["cases"]) > 1:
        about = f" of {len(event['cases']):,} cases"
    if number == 1:
        pairs, about = "stories {a} and {b}".format_map(event["pairs"][0]), ""
    did = "undid" if event["event"] == "undo" else "decided"
    return f"neardup: {event['by']} {did} {event['verdict'].replace('_', ' ')}, {pairs}{about}"


def format_complaint(event: Mapping[str, Any]) -> str:
    """`neardup: complaint 3 about story 7: received, due 2026-11-28T02:00:00Z`, or how it was closed."""
    step = event["step"].replace("_", " ")
    outcome = event["outcome"]
    ends = f"due {event['due_at']}" if outcome is None else outcome.replace("_", " ")
    return f"neardup: complaint {event['complaint']} about story {event['story_id']}: {step}, {ends}"


def format_hiding(event: Mapping[str, Any]) -> str:
    """`neardup: Asha asks to hide 3 stories of author 7`, or to show them again."""
    stories = f"{format_count(len(event['stories']), 'story', 'stories')} of author {event['author']}"
    return f"neardup: {event['by']} asks to {event['event']} {stories}{' again' if event['event'] == 'show' else ''}"


def format_permission_end(event: Mapping[str, Any]) -> str:
    """`neardup: permission 3 of author 7 has ended; 2 stories are open again`."""
    by = f"author {event['granted_by']}" if event["catalogue"] is None else f"catalogue {event['catalogue']}"
    stories = format_count(len(event["stories"]), "story is open again", "stories are open again")
    return f"neardup: permission {event['permission']} of {by} has ended; {stories}"


LINES = {
    "verdict": format_verdict,
    "undo": format_verdict,
    "hide": format_hiding,
    "show": format_hiding,
    "flags": format_flags,
    "complaint": format_complaint,
    "permission_ended": format_permission_end,
}


def format_summary(command: str, status: str, facts: dict[str, Any], file: str | None) -> str:
    """`neardup daily done: 10,000 listed, 7 flagged (exact 3, near 4), file var/flags.html`, then any warnings."""
    kinds = ", ".join(f"{kind} {n:,}" for kind, n in facts["flagged"].items())
    flagged = f"{sum(facts['flagged'].values()):,} flagged" + (f" ({kinds})" if kinds else "")
    listed = [f"{facts['listed']:,} listed"] if "listed" in facts else []
    failed = [f"{hook} failed: {why}" for hook, why in facts["warnings"].items()]
    parts = [*listed, flagged, *([f"file {file}"] if file else []), *failed]
    return f"neardup {command} {status}: {', '.join(parts)}"


async def _post(key: str, url: str, name: str, event: Mapping[str, Any], secrets: Sequence[str]) -> None:
    """POST an event of this name as JSON, signed.  Raises Transient and Fatal, which do not show the URL."""
    body = json.dumps(event, ensure_ascii=False).encode("utf-8", "replace")
    headers = {"Content-Type": "application/json", **sign(name, body, secrets, now_ms() // 1000)}
    import aiohttp  # noqa: PLC0415 - 0.3 s, for installations with a webhook only

    try:
        async with (
            aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=TIMEOUT_SECONDS)) as session,
            session.post(url, data=body, headers=headers, allow_redirects=False) as answer,
        ):
            status = answer.status
    except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
        raise Transient(f"{key} does not answer: {type(error).__name__}", "webhook") from None
    if status >= 500 or status in RETRIED_STATUSES:
        raise Transient(f"{key} answers {status}", "webhook")
    if status >= 300:
        raise Fatal(f"{key} answers {status}")
