"""The program's log.  structlog, whose import takes longer than a short command may, is loaded with the first line.

It comes without rich, which structlog takes for tracebacks on a terminal wherever it is installed: rich takes more time
to load than all else of structlog.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from threading import Event, Thread
from typing import Any

LOG_EVERY_SECONDS = 30.0
_set_up: list[Callable[[], object]] = []  # at most one


def set_up_log(configure: Callable[[], object]) -> None:
    """Call `configure`, which configures structlog, before the next line; now, if structlog is loaded already."""
    _set_up[:] = [configure]
    if "structlog" in sys.modules:
        _configure()


class _Log:
    """Stands for a logger of structlog."""

    def __getattr__(self, level: str) -> Any:
        logger = load_structlog().get_logger()
        _configure()
        return getattr(logger, level)


@cache
def load_structlog() -> Any:
    is_kept_out = sys.modules.setdefault("rich", None) is None  # type: ignore[arg-type] # its import fails then
    try:
        import structlog  # noqa: PLC0415 - see above
    finally:
        if is_kept_out:
            del sys.modules["rich"]
    return structlog


@contextmanager
def run_beside(work: Callable[[Event], None]) -> Iterator[None]:
    """Do some work in a thread while the context lasts; it is to return soon after the event is set."""
    ended = Event()
    thread = Thread(target=work, args=(ended,), daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def log_meanwhile(log_line: Callable[[], None]) -> AbstractContextManager[None]:
    """Call a function that logs what is done, in a thread, every LOG_EVERY_SECONDS while the context lasts."""

    def keep_logging(ended: Event) -> None:
        while not ended.wait(LOG_EVERY_SECONDS):
            log_line()

    return run_beside(keep_logging)


def log_phase(command: str, phase: str) -> AbstractContextManager[None]:
    """Log from time to time, while the context lasts, that a command is still in a phase that has no count."""
    return log_meanwhile(lambda: log.info("progress", command=command, phase=phase))


def _configure() -> None:
    while _set_up:
        _set_up.pop()()


log: Any = _Log()
