"""One pipeline command at a time: an advisory lock beside the ledger, which dies with its process."""

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import IO, Any

import stamina

from daemon.errors import Fatal, Transient


@contextmanager
def only_one(ledger: Path, command: str) -> Iterator[None]:
    """Hold the ledger for `command`.  Raises Transient, naming the holder, where it is held."""
    path = _path(ledger)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("a+", encoding="utf-8")
    except OSError as error:
        raise Fatal(f"cannot lock the ledger: {error}") from error
    with file:
        if not _take(file):
            raise Transient(f"the ledger is in use: {describe(ledger)}", "locked")
        file.truncate(0)
        json.dump(
            {"command": command, "pid": os.getpid(), "since": datetime.now().astimezone().isoformat(" ", "seconds")},
            file,
        )
        file.flush()
        yield
        file.truncate(0)


def _take(file: IO[str]) -> bool:
    try:
        # `holder` holds the lock for an instant, so one refusal proves nothing.
        for attempt in stamina.retry_context(
            BlockingIOError, attempts=5, wait_initial=0.02, wait_max=0.1, wait_jitter=0
        ):
            with attempt:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def holder(ledger: Path) -> dict[str, Any] | None:
    """Who holds the ledger: command, pid and since; None where nobody does."""
    try:
        with _path(ledger).open(encoding="utf-8") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                text = file.read()
                return dict(json.loads(text)) if text else {"command": "another command"}
    except OSError:
        pass
    except ValueError:  # half written as yet
        return {"command": "another command"}
    return None


def describe(ledger: Path) -> str:
    """The holder in words."""
    who = holder(ledger) or {"command": "another command"}
    pid = f", process {who['pid']}, since {who['since']}" if "pid" in who else ""
    return f"neardup {who['command']}{pid}"


def _path(ledger: Path) -> Path:
    return ledger.with_name(ledger.name + ".lock")
