"""Posts the summary of a run to the webhook of [export], and verdicts to that of [review]."""

from collections.abc import Mapping
from typing import Any

from neardup.config import Export
from neardup.config.sections import Review
from neardup.errors import Fatal, Transient
from neardup.records import Kind
from neardup.retry import retry_call

TIMEOUT_SECONDS = 10
RETRIED_STATUSES = frozenset({408, 425, 429})  # and every 5xx


async def notify_webhook(section: Export, command: str, status: str, facts: dict[str, Any]) -> None:
    """POST the summary of a run and its export file as JSON; does nothing if [export] sets no webhook.

    `text` is the summary in one line, which chat services display.  Raises Transient if the webhook does not answer or
    is busy, Fatal if it refuses; neither message contains the URL, which may be a secret.
    """
    url = section.webhook
    if not url:
        return
    file = str(section.path) if section.path and "export" not in facts["warnings"] else None
    body = {
        "text": summary_line(command, status, facts, file),
        "command": command,
        "status": status,
        **facts,
        "file": file,
    }
    await retry_call("webhook", lambda: _post("export.webhook", url, body))


async def notify_embedding(section: Export, status: str, found: Mapping[Kind, int]) -> None:
    """POST how many translated and retold pairs are new, of the kinds that [export] names; does nothing if of none.

    Raises as `notify_webhook` does.
    """
    if section.webhook and section.webhook_kinds:
        facts: dict[str, Any] = {"flagged": {kind: found[kind] for kind in section.webhook_kinds}, "warnings": {}}
        body = {"text": summary_line("embed", status, facts, None), "command": "embed", "status": status, **facts}
        await retry_call("webhook", lambda: _post("export.webhook", section.webhook, body))


async def notify_verdict(section: Review, event: Mapping[str, Any]) -> None:
    """POST an event of `ledger.verdicts` as JSON, with `text`, a line for a chat room.

    Raises as `notify_webhook` does.
    """
    body = {"text": verdict_line(event), **event}
    await retry_call("webhook", lambda: _post("review.webhook", section.webhook, body))


def verdict_line(event: Mapping[str, Any]) -> str:
    """`neardup: Asha decided plagiarism, 3 pairs of case 5`, or that Asha undid it."""
    number = len(event["pairs"])
    pairs = f"{number:,} {'pair' if number == 1 else 'pairs'}"
    about = "".join(f" of case {case}" for case in event["cases"][:1])
    if len(event["cases"]) > 1:
        about = f" of {len(event['cases']):,} cases"
    if number == 1:
        pairs, about = "stories {a} and {b}".format_map(event["pairs"][0]), ""
    did = "undid" if event["event"] == "undo" else "decided"
    return f"neardup: {event['by']} {did} {event['verdict'].replace('_', ' ')}, {pairs}{about}"


def summary_line(command: str, status: str, facts: dict[str, Any], file: str | None) -> str:
    """`neardup daily done: 10,000 listed, 7 flagged (exact 3, near 4), file var/flags.html`, then any warnings."""
    kinds = ", ".join(f"{kind} {n:,}" for kind, n in facts["flagged"].items())
    flagged = f"{sum(facts['flagged'].values()):,} flagged" + (f" ({kinds})" if kinds else "")
    listed = [f"{facts['listed']:,} listed"] if "listed" in facts else []
    failed = [f"{hook} failed: {why}" for hook, why in facts["warnings"].items()]
    parts = [*listed, flagged, *([f"file {file}"] if file else []), *failed]
    return f"neardup {command} {status}: {', '.join(parts)}"


async def _post(key: str, url: str, body: dict[str, Any]) -> None:
    import aiohttp  # noqa: PLC0415 - 0.3 s, for installations with a webhook only

    try:
        async with (
            aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=TIMEOUT_SECONDS)) as session,
            session.post(url, json=body, allow_redirects=False) as answer,
        ):
            status = answer.status
    except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
        raise Transient(f"{key} does not answer: {type(error).__name__}", "webhook") from None
    if status >= 500 or status in RETRIED_STATUSES:
        raise Transient(f"{key} answers {status}", "webhook")
    if status >= 300:
        raise Fatal(f"{key} answers {status}")
