"""One pipeline command at a time, and one daemon: advisory locks beside the ledger, which die with their processes."""

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import IO, Any

import stamina

from neardup.errors import Fatal, Transient
from neardup.ledger import files

PIPELINE = ".lock"
DAEMON = ".run.lock"


@contextmanager
def only_one(ledger: Path, command: str) -> Iterator[None]:
    """Hold the ledger for `command`.  Raises Transient, naming the holder, where it is held."""
    with _held(_path(ledger, PIPELINE), command, "the ledger is in use"):
        yield


@contextmanager
def only_daemon(ledger: Path) -> Iterator[None]:
    """Be the daemon of this ledger, also between runs.  Raises Transient, naming the other, where there is one."""
    with _held(_path(ledger, DAEMON), "run", "the ledger has a daemon"):
        yield


@contextmanager
def _held(path: Path, command: str, refusal: str) -> Iterator[None]:
    with _opened(path) as file:
        if not _take(file):
            raise Transient(f"{refusal}: {_in_words(_holder(path))}", "locked")
        since = datetime.now().astimezone().isoformat(" ", "seconds")
        try:
            file.truncate(0)
            json.dump({"command": command, "pid": os.getpid(), "since": since}, file)
            file.flush()
        except OSError as error:
            raise _unlocked(path, error) from error
        yield
        file.truncate(0)


@contextmanager
def _opened(path: Path) -> Iterator[IO[str]]:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        files.make(path)
        file = path.open("a+", encoding="utf-8")
    except OSError as error:
        raise _unlocked(path, error) from error
    try:
        yield file
    finally:
        with suppress(OSError):  # what could not be written is tried again; the lock is gone all the same
            file.close()


def _unlocked(path: Path, error: OSError) -> Fatal:
    return Fatal(f"cannot lock the ledger: {path}: {error.strerror}")


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
    return _holder(_path(ledger, PIPELINE))


def _holder(path: Path) -> dict[str, Any] | None:
    try:
        with path.open(encoding="utf-8") as file:
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


def _in_words(who: dict[str, Any] | None) -> str:
    who = who or {"command": "another command"}
    pid = f", process {who['pid']}, since {who['since']}" if "pid" in who else ""
    return f"neardup {who['command']}{pid}"


def _path(ledger: Path, suffix: str) -> Path:
    return ledger.with_name(ledger.name + suffix)
