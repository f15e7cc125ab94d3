"""Hooks, called after a run is recorded: export, gauges, webhook.  A hook that fails adds a warning to the run."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from neardup.errors import NeardupError
from neardup.pipeline.grace_period import GracePeriodOver, within_grace_period
from neardup.pipeline.summary import Summary
from neardup.telemetry.log import log

GRACE_SECONDS = 5.0  # for a hook to end after a signal to stop


@dataclass(frozen=True, slots=True)
class Hook:
    """A call after each run; warnings give its `name`.  After a signal to stop, only `vital` hooks are called."""

    name: str
    call: Callable[[Summary], Awaitable[None]]
    vital: bool = False


async def run_hooks(hooks: Sequence[Hook], summary: Summary, stop: asyncio.Event) -> None:
    """Call the hooks in order; a failure is added to `summary.warnings` and logged."""
    for hook in hooks:
        if stop.is_set() and not hook.vital:
            continue
        try:
            await within_grace_period(hook.call(summary), stop, GRACE_SECONDS)
        except GracePeriodOver:
            why = f"not finished {GRACE_SECONDS:.0f} seconds after the signal to stop"
        except NeardupError as error:
            why = str(error)
        except Exception as error:
            log.exception("a hook raised an unexpected error", hook=hook.name)
            why = f"{type(error).__name__}: {error}"
        else:
            continue
        summary.warnings[hook.name] = why
        log.warning("a hook failed after the run", hook=hook.name, why=why)
