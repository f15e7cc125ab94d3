"""Advisory locks beside the ledger, which end with their process: one pipeline command at a time, and one daemon."""

import asyncio
import fcntl
import json
import os
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import IO, Any

from neardup.errors import Fatal, Transient
from neardup.ledger import files

PIPELINE = ".lock"
DAEMON = ".run.lock"
INSTANT_SECONDS = 0.3
SERVE, UPGRADE = "serve", "upgrade"
BRIEF = {SERVE, UPGRADE}  # holders that end within seconds
BRIEF_SECONDS = 5.0
PAUSE_SECONDS = 0.05
Note = Callable[[Mapping[str, object]], None]


@contextmanager
def only_one(ledger: Path, command: str) -> Iterator[Note]:
    """Lock the ledger for `command`, and yield the function that adds facts to what `read_holder` says of it.

    Raises Transient, which names the holder, where it is locked.
    """
    with _hold(files.name_beside(PIPELINE, ledger), command, "the ledger is in use") as note:
        yield note


@asynccontextmanager
async def lock_patiently(ledger: Path, command: str) -> AsyncIterator[Note]:
    """As `only_one`, but the event loop goes on meanwhile: it serves, and the holder may be in this very process."""
    lock = only_one(ledger, command)
    note = await asyncio.to_thread(lock.__enter__)
    try:
        yield note
    finally:
        lock.__exit__(None, None, None)


@contextmanager
def only_daemon(ledger: Path) -> Iterator[None]:
    """Lock the ledger as its daemon, also between runs.  Raises Transient, which names the other daemon."""
    with _hold(files.name_beside(DAEMON, ledger), "run", "the ledger has a daemon"):
        yield


@contextmanager
def _hold(path: Path, command: str, refusal: str) -> Iterator[Note]:
    with _open(path) as file:
        if not _take(file) and not ((_read_holder(path) or {}).get("command") in BRIEF and _take(file, BRIEF_SECONDS)):
            raise Transient(f"{refusal}: {_describe_holder(_read_holder(path))}", "locked")
        since = datetime.now().astimezone().isoformat(" ", "seconds")
        holding = {"command": command, "pid": os.getpid(), "since": since}

        def note(facts: Mapping[str, object]) -> None:
            line = json.dumps({**holding, **facts}) + "\n"  # what stands behind it is of a longer one
            with suppress(OSError):  # the disk is full
                os.pwrite(file.fileno(), line.encode(), 0)

        try:
            file.truncate(0)
            file.write(json.dumps(holding) + "\n")
            file.flush()
        except OSError as error:
            raise _explain_failure(path, error) from error
        yield note
        file.truncate(0)


@contextmanager
def _open(path: Path) -> Iterator[IO[str]]:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        files.make_file(path)
        file = path.open("r+", encoding="utf-8")
    except OSError as error:
        raise _explain_failure(path, error) from error
    try:
        yield file
    finally:
        with suppress(OSError):  # the lock is released even if closing fails
            file.close()


def _explain_failure(path: Path, error: OSError) -> Fatal:
    return Fatal(f"cannot lock the ledger: {path}: {error.strerror}")


def _take(file: IO[str], seconds: float = INSTANT_SECONDS) -> bool:
    deadline = time.monotonic() + seconds  # `read_holder` takes the lock for an instant, so one refusal proves nothing
    while True:
        with suppress(BlockingIOError):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        if time.monotonic() > deadline:
            return False
        time.sleep(PAUSE_SECONDS)


def read_holder(ledger: Path) -> dict[str, Any] | None:
    """The holder of the pipeline lock: command, pid, since, and what it has noted; None where it is free."""
    return _read_holder(files.name_beside(PIPELINE, ledger))


def read_daemon(ledger: Path) -> dict[str, Any] | None:
    """The daemon of the ledger, as `read_holder` describes a command; None where there is none."""
    return _read_holder(files.name_beside(DAEMON, ledger))


def _read_holder(path: Path) -> dict[str, Any] | None:
    try:
        with path.open(encoding="utf-8") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                text = file.readline()
                return dict(json.loads(text)) if text else {"command": "another command"}
    except OSError:
        pass
    except ValueError:  # the holder is still writing it
        return {"command": "another command"}
    return None


def _describe_holder(who: dict[str, Any] | None) -> str:
    who = who or {"command": "another command"}
    pid = f", process {who['pid']}, since {who['since']}" if "pid" in who else ""
    return f"neardup {who['command']}{pid}"
