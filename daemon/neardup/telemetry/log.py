"""The program's log.  structlog, whose import takes longer than a short command may, is loaded with the first line."""

import sys
from collections.abc import Callable
from typing import Any

_set_up: list[Callable[[], object]] = []  # at most one


def set_up_log(configure: Callable[[], object]) -> None:
    """Call `configure`, which configures structlog, before the next line; now, if structlog is loaded already."""
    _set_up[:] = [configure]
    if "structlog" in sys.modules:
        _configured()


class _Log:
    """Stands for a logger of structlog."""

    def __getattr__(self, level: str) -> Any:
        import structlog  # noqa: PLC0415 - see above

        _configured()
        return getattr(structlog.get_logger(), level)


def _configured() -> None:
    while _set_up:
        _set_up.pop()()


log: Any = _Log()
