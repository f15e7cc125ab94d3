"""Runs the command in processes that get a signal at a chosen point, without hooks in the program.

    python -m tests.support.faults.killed_command

reads requests from stdin, a line of JSON each, and answers each with a line.  The processes are forked from one that
has imported all modules and loaded the compiled functions, so they start in a few milliseconds.  In each process the
steps of the program are wrapped, and SQL statements and messages to Redis are counted; the point is one of these, or
some seconds after one.
"""

import asyncio
import inspect
import json
import os
import signal
import sqlite3
import sys
import threading
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable
from functools import partial, wraps
from pathlib import Path
from typing import Any

from neardup import app, retry
from neardup.cli import main
from neardup.index.passages.index import PassageIndex
from neardup.index.redis.base import RedisIndex
from neardup.index.sqlite import SqliteIndex
from neardup.ledger import connect, flags, outbox, passages, runs, schema, stories, submissions, verdicts, verification
from neardup.moderation.export import write
from neardup.nomination import lookup as nomination
from neardup.pipeline import index_sync, run, submitted_pages, sweep, writer
from neardup.pipeline.passage_sync import PassageReading
from neardup.records import Language, Verdict
from redis.asyncio.connection import AbstractConnection

from tests.support import forked_readers
from tests.support.checked_ledger import checked_ledger
from tests.support.forked_command import load_program
from tests.support.sampling import CHAOS

STEPS: dict[str, list[tuple[Any, str]]] = {
    "upgrade the ledger": [(schema, "upgrade")],
    "begin a run": [(runs, "begin")],
    "look up": [(writer.Writer, "_look_up")],
    "nominate": [(nomination, "select_matches")],
    "commit": [(stories, "commit")],
    "checkpoint": [(stories, "put_checkpoint")],
    "index": [(SqliteIndex, "apply"), (RedisIndex, "apply")],
    "replay": [(writer, "replay")],
    "catch up": [(module, "catch_up") for module in (writer, index_sync)],
    "verify": [(verification, "record")],
    "clear the index": [(SqliteIndex, "clear"), (RedisIndex, "clear")],
    "build the index": [(SqliteIndex, "build"), (RedisIndex, "build")],
    "rebuild": [(run, "rebuild"), (index_sync, "rebuild")],
    "prune passage hashes": [(passages, "prune_hashes")],
    "owe a sweep": [(runs, "owe_sweep")],
    "nominate in a sweep": [(sweep, "record_pairs")],
    "sweep": [(app, "sweep")],
    "forget": [(stories, "forget")],
    "judge": [(verdicts, "decide")],
    "undo": [(verdicts, "undo")],
    "flush passages": [(PassageIndex, "flush")],
    "merge passages": [(PassageIndex, "merge")],
    "read passages again": [(PassageReading, "_read_all")],
    "export": [(write, "export")],
    "keep a page": [(submitted_pages, "write")],
    "store a submission": [(submissions, "commit")],
    "settle": [(submissions, "settle")],
    "finish a run": [(runs, "finish")],
    "prune": [(outbox, "prune_changes")],
}
START, STATEMENT, MESSAGE = "the start", "a statement", "a message"
PATIENT_WAIT_SECONDS = 0.2  # at most between two attempts, of a run that waits


class Trigger:
    """Counts the points that this process reaches, and sends it a signal at the chosen one.

    `at` has the keys `point`: "before" or "after" and a step, START, STATEMENT, or MESSAGE, which is half sent by then;
    `nth`, from 1; `since`: a point before which none counts; `seconds`: a delay of the signal; `signal`: its name.
    """

    def __init__(self, at: dict[str, Any] | None, reached: Path) -> None:
        self._at = at or {}
        self._reached = reached
        self._counts: Counter[str] = Counter()

    def reach(self, point: object, *_: object) -> None:
        if self.is_next(str(point)):
            self.send_signal()

    def is_next(self, point: str) -> bool:
        since = self._at.get("since")
        self._counts[point] += since is None or since == point or self._counts[since] > 0
        return point == self._at.get("point") and self._counts[point] == self._at["nth"]

    def send_signal(self) -> None:
        send = partial(os.kill, os.getpid(), getattr(signal, self._at.get("signal", "SIGKILL")))
        if seconds := self._at.get("seconds"):
            threading.Timer(seconds, send).start()
        else:
            send()

    def save_counts(self) -> None:
        """Record how often each point was reached, from which other points can be chosen."""
        self._reached.write_text(json.dumps(self._counts), encoding="utf-8")


def wrap(owner: Any, name: str, step: str, trigger: Trigger) -> None:
    """Count the calls of a plain function, a coroutine function or an asynchronous generator function."""
    function = getattr(owner, name)
    before, after = f"before {step}", f"after {step}"

    @wraps(function)
    async def pages(*args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        async for page in function(*args, **kwargs):
            trigger.reach(before)
            yield page
            trigger.reach(after)

    @wraps(function)
    async def awaited(*args: Any, **kwargs: Any) -> Any:
        trigger.reach(before)
        result = await function(*args, **kwargs)
        trigger.reach(after)
        return result

    @wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        trigger.reach(before)
        result = function(*args, **kwargs)
        trigger.reach(after)
        return result

    generates, awaits = inspect.isasyncgenfunction(function), inspect.iscoroutinefunction(function)
    setattr(owner, name, pages if generates else awaited if awaits else called)


def wrap_statements(trigger: Trigger) -> None:
    class Traced(sqlite3.Connection):
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            self.set_trace_callback(partial(trigger.reach, STATEMENT))

    sqlite3.connect = partial(sqlite3.connect, factory=Traced)  # type: ignore[assignment]


def wrap_messages(trigger: Trigger) -> None:
    send = AbstractConnection.send_packed_command

    async def sent(self: Any, command: bytes | str | Iterable[bytes], check_health: bool = True) -> None:
        if trigger.is_next(MESSAGE):
            whole = command if isinstance(command, bytes) else b"".join(command)  # type: ignore[arg-type]
            os.write(self._writer.get_extra_info("socket").fileno(), whole[: len(whole) // 2])
            trigger.send_signal()
        await send(self, command, check_health)

    AbstractConnection.send_packed_command = sent  # type: ignore[method-assign]


def judge(ledger: str, a: str, b: str, verdict: str) -> None:
    """Give a verdict on a pair, or with `open` undo the active one; do nothing if that is already done."""
    db = connect(Path(ledger))
    flag = flags.read_pair(db, int(a), int(b))
    assert flag is not None, f"{a} and {b} are not flagged"
    seen = verdicts.identify_state(db, [flag["flag_id"]])
    if flag["status"] == "open" and verdict != "open":
        verdicts.decide(db, [flag["flag_id"]], Verdict(verdict), "as seen", "Asha", seen)
    elif flag["status"] != "open" and verdict == "open":
        verdicts.undo(db, verdicts.list_of_pair(db, int(a), int(b))[0]["decision"], "Binu", seen)
    db.close()


def submit(folder: str, story_id: str, language: str, words: str) -> None:
    """Store a submitted story, and settle it."""

    async def put() -> None:
        async with checked_ledger(Path(folder)) as platform:
            await platform.put(Language(language), int(story_id), words.split())
            await platform.upkeep.do_due_work()

    asyncio.run(put())


def run_command(request: dict[str, Any]) -> int:
    """Run the command in this process; returns its exit code."""
    folder = Path(request["folder"])
    os.chdir(folder)
    for number, name in ((0, os.devnull), (1, f"{request['name']}.out"), (2, f"{request['name']}.err")):
        os.dup2(os.open(name, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600), number)
    loaded = dict(os.environ)
    os.environ.update(request["env"])
    forked_readers.prepare_server(loaded)
    trigger = Trigger(request["at"], folder / f"{request['name']}.reached")
    for step, places in STEPS.items():
        for place in places:
            wrap(*place, step, trigger)
    wrap_statements(trigger)
    wrap_messages(trigger)
    trigger.reach(START)
    arguments = request["arguments"]
    others: dict[str, Callable[..., object]] = {"judge": judge, "submit": submit}
    other = others.get(arguments[0])
    command: Callable[[], object] = partial(other, *arguments[1:]) if other else partial(main, arguments)
    try:
        command()
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else 0
    finally:
        trigger.save_counts()
        sys.stdout.flush()
    return 0


def start(request: dict[str, Any]) -> int:
    """Run the command in a forked process; returns its id."""
    if child := os.fork():
        return child
    try:
        code = run_command(request)
    except BaseException:  # noqa: BLE001 - the forked process must not return to the request loop
        sys.excepthook(*sys.exc_info())
        code = 70
    sys.stderr.flush()
    os._exit(code)


def serve() -> None:
    """Answer {"start": request} with a process id, and {"wait": id} with {"code": ...} or {"stopped": true}."""
    load_program()
    forked_readers.load()
    if CHAOS == 1:  # the table of `make chaos` says how long a run waits in earnest
        retry.PATIENT_WAIT_SECONDS = PATIENT_WAIT_SECONDS
    for line in sys.stdin:
        [(action, subject)] = json.loads(line).items()
        if action == "start":
            answer: Any = start(subject)
        else:
            _, status = os.waitpid(subject, os.WUNTRACED)
            answer = {"stopped": True} if os.WIFSTOPPED(status) else {"code": os.waitstatus_to_exitcode(status)}
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    serve()
