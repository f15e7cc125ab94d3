"""The daemon: daily runs on a schedule, /metrics and /healthz, systemd's notifications."""

import asyncio
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

from neardup.app import App, run_once
from neardup.config.schedule import Schedule, find_next_run
from neardup.errors import IndexDamaged, NeardupError, Stopped, Transient
from neardup.http.server import serve_metrics
from neardup.ledger import Ledger, now_ms, runs
from neardup.ledger.lock import only_daemon
from neardup.pipeline.gauges import refresh_gauges
from neardup.pipeline.index_sync import IndexWait
from neardup.pipeline.run_lifecycle import Hook
from neardup.pipeline.summary import Progress, log_progress
from neardup.telemetry.log import load_structlog, log
from neardup.telemetry.metrics import RETRIES, WAITING
from neardup.telemetry.systemd import notify, notifying_watchdog

RETRY_FIRST = timedelta(minutes=1)
RETRY_MAX = timedelta(hours=1)
OPEN_RETRY_SECONDS = 5.0
REFRESH_SECONDS = 300.0


class Service:
    """`neardup run`: opens the app, retrying while that is not possible, and does daily runs until `stop` is set.

    `hooks` are called after each run, beside those that every run has.
    """

    def __init__(
        self,
        ledger: Path,
        listen: str,
        schedule: Schedule,
        open_app: Callable[[], AbstractAsyncContextManager[App]],
        stop: asyncio.Event,
        *,
        hooks: Callable[[App], Sequence[Hook]] = lambda _: (),
    ) -> None:
        self._ledger = ledger
        self._listen = listen
        self._schedule = schedule
        self._open_app = open_app
        self._stop = stop
        self._hooks = hooks
        self._index_wait: IndexWait | None = None  # of the app that is open, or was open last
        self._former: Ledger | None = None  # of that app: another file in its place must not be opened
        self._doing = "starting"
        self._failure: str | None = None

    async def run(self) -> None:
        """Serve until `stop` is set; a run that is under way finishes its queued work.

        Raises Fatal if an operator must repair something before a run can begin, Transient if another daemon has the
        ledger.
        """
        with only_daemon(self._ledger):
            await self._run()

    async def _run(self) -> None:
        async with serve_metrics(self._listen, "run", self._describe_health), notifying_watchdog():
            log.info("serving", listen=self._listen)
            notify("READY=1", "STATUS=starting")
            try:
                await self._serve()
            finally:
                log.info("stopping")
                notify("STOPPING=1")

    async def _serve(self) -> None:
        while not self._stop.is_set():
            try:
                if self._former is not None:
                    self._former.refuse_successor()
                async with self._open_app() as app:
                    self._former = app.ledger
                    WAITING.labels("start").set(0)
                    self._index_wait = app.index_wait
                    await self._keep_schedule(app)
            except Transient as error:
                RETRIES.labels("open", error.reason).inc()
                WAITING.labels("start").set(1)
                self._set_status(f"waiting: {error}")
                log.warning("waiting", why=str(error))
                await self._pause(OPEN_RETRY_SECONDS)

    async def _keep_schedule(self, app: App) -> None:
        retry, not_before = RETRY_FIRST, time.monotonic()  # the wall clock may be set back
        while not self._stop.is_set():
            with suppress(IndexDamaged):  # the next run repairs it
                await refresh_gauges(app.ledger, app.index, app.passages)
            last_ms = (await app.ledger.do(runs.read_last_successes)).get("daily")
            now = datetime.fromtimestamp(now_ms() / 1000, UTC)
            last_success = datetime.fromtimestamp(last_ms / 1000, UTC) if last_ms else None
            until_due = (find_next_run(self._schedule, last_success, now) - now).total_seconds()
            wait = max(until_due, not_before - time.monotonic())
            if wait > 0:
                self._announce_next((now + timedelta(seconds=wait)).astimezone())
                await self._pause(min(wait, REFRESH_SECONDS))
                continue
            try:
                await self._run_daily(app)
                retry, self._failure = RETRY_FIRST, None
            except Stopped:
                return
            except NeardupError as error:
                if not isinstance(error, Transient):  # /healthz stays healthy; an alert watches the last success
                    self._failure = str(error)
                log.error("the run failed", why=str(error), again_in=str(retry))
                not_before = time.monotonic() + retry.total_seconds()
                retry = min(2 * retry, RETRY_MAX)
            finally:
                load_structlog().contextvars.unbind_contextvars("run")

    async def _run_daily(self, app: App) -> None:
        self._set_status("daily run")
        with log_progress("daily") as watch:

            def show(progress: Progress) -> None:
                watch(progress)
                counts = progress.counts
                self._set_status(f"daily run: {counts.listed} listed, {counts.flagged.total()} flagged")

            summary = await run_once(app, "daily", self._stop, show, hooks=self._hooks(app))
        log.info("run ended", status=summary.status, **summary.as_dict())

    async def _pause(self, seconds: float) -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(self._stop.wait(), seconds)

    def _announce_next(self, at: datetime) -> None:
        doing = f"next run at {at:%Y-%m-%d %H:%M:%S %Z}"
        if doing != self._doing:
            log.info("next run", at=at.isoformat(timespec="seconds"))
        self._set_status(doing)

    def _set_status(self, doing: str) -> None:
        self._doing = doing
        notify(f"STATUS={doing}")

    def _describe_health(self) -> dict[str, object]:
        doing = (self._index_wait and self._index_wait.status) or self._doing
        healthy = self._failure is None and not doing.startswith("waiting")
        return {"healthy": healthy, "doing": doing, "last_failure": self._failure}
