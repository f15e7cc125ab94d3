"""The program's log.  structlog, whose import takes longer than a short command may, is loaded with the first line.

It comes without rich, which structlog takes for tracebacks on a terminal wherever it is installed: rich takes more time
to load than all else of structlog.
"""

import sys
from collections.abc import Callable
from functools import cache
from typing import Any

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
    """The module structlog."""
    is_kept_out = sys.modules.setdefault("rich", None) is None  # type: ignore[arg-type] # its import fails then
    try:
        import structlog  # noqa: PLC0415 - see above
    finally:
        if is_kept_out:
            del sys.modules["rich"]
    return structlog


def _configure() -> None:
    while _set_up:
        _set_up.pop()()


log: Any = _Log()
