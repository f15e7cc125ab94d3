"""Posts the summary of a run to the webhook of [export]."""

from typing import Any

from neardup.config import Export
from neardup.errors import Fatal, Transient
from neardup.retry import retried

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
    await retried("webhook", lambda: _post(url, body))


def summary_line(command: str, status: str, facts: dict[str, Any], file: str | None) -> str:
    """`neardup daily done: 10,000 listed, 7 flagged (exact 3, near 4), file var/flags.html`, then any warnings."""
    kinds = ", ".join(f"{kind} {n:,}" for kind, n in facts["flagged"].items())
    flagged = f"{sum(facts['flagged'].values()):,} flagged" + (f" ({kinds})" if kinds else "")
    listed = [f"{facts['listed']:,} listed"] if "listed" in facts else []
    failed = [f"{hook} failed: {why}" for hook, why in facts["warnings"].items()]
    parts = [*listed, flagged, *([f"file {file}"] if file else []), *failed]
    return f"neardup {command} {status}: {', '.join(parts)}"


async def _post(url: str, body: dict[str, Any]) -> None:
    import aiohttp  # noqa: PLC0415 - 0.3 s, for installations with a webhook only

    try:
        async with (
            aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=TIMEOUT_SECONDS)) as session,
            session.post(url, json=body, allow_redirects=False) as answer,
        ):
            status = answer.status
    except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
        raise Transient(f"export.webhook does not answer: {type(error).__name__}", "webhook") from None
    if status >= 500 or status in RETRIED_STATUSES:
        raise Transient(f"export.webhook answers {status}", "webhook")
    if status >= 300:
        raise Fatal(f"export.webhook answers {status}")
