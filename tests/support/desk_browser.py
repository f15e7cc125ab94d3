"""A real browser in front of a real desk: Debian's Chromium, driven by playwright, and the command as a process."""

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Dialog, Page, sync_playwright

from tests.support.command import Neardup
from tests.support.paths import ROOT

CHROMIUM = "/usr/bin/chromium"
FLAGS = (
    "--no-sandbox",  # which root may not use
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
WIDE, NARROW = (1280, 900), (360, 760)
PATIENCE_SECONDS = 30


@contextmanager
def chromium() -> Iterator[Browser]:
    """Headless; its event loop is this thread's while it is open, so no test with one of its own may run beside it."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


@dataclass
class Desk:
    """`neardup review` as a process; what it has said is in `said` once it has ended."""

    address: str
    neardup: Neardup
    process: subprocess.Popen[str]
    said: list[str] = field(default_factory=list)

    def end(self) -> int:
        """Ask it to stop; its exit code."""
        self.process.send_signal(signal.SIGTERM)
        _, said = self.process.communicate(timeout=PATIENCE_SECONDS)
        self.said.append(said)
        return self.process.returncode


@contextmanager
def serving(neardup: Neardup, *arguments: str, **env: str) -> Iterator[Desk]:
    """The desk of a ledger on a free port, until the context ends: then it must stop cleanly."""
    command = neardup.command("review", *(arguments or ("--listen", "127.0.0.1:0")))
    with subprocess.Popen(
        command, env=neardup.env | env, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stderr is not None
            first = process.stderr.readline()
            assert "address" in first, f"it did not open: {first}"
            desk = Desk(json.loads(first)["address"].rstrip("/"), neardup, process, [first])
            yield desk
            if process.poll() is None:
                assert desk.end() == 0, desk.said
        finally:
            process.kill()


@dataclass
class Moderator:
    """A browser window of its own, with its own cookies, at a desk; what must not happen in it is collected."""

    context: BrowserContext
    page: Page
    address: str
    shots: Path
    wrong: list[str] = field(default_factory=list)

    def go(self, path: str) -> Page:
        self.page.goto(self.address + path)
        return self.page

    def shot(self, name: str, *, whole: bool = True) -> None:
        """Keep a screenshot."""
        self.page.screenshot(path=self.shots / f"{name}.png", full_page=whole)

    def fits(self) -> bool:
        """Whether the page is no wider than the window."""
        self.page.wait_for_load_state()
        self.page.wait_for_load_state()
        return bool(self.page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth"))

    def expect(self, status: int) -> None:
        """An answer with this status will come, of which the browser complains."""
        self.wrong = [line for line in self.wrong if f"status of {status} " not in line]


@contextmanager
def seated(browser: Browser, desk: Desk, shots: Path, name: str = "Asha", **options: Any) -> Iterator[Moderator]:
    """A moderator who has given a name; at the end nothing may have been wrong: no dialog, no error, no violation."""
    width, height = options.pop("window", WIDE)
    context = browser.new_context(viewport={"width": width, "height": height}, **options)
    page = context.new_page()
    moderator = Moderator(context, page, desk.address, shots)

    def said(message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            moderator.wrong.append(f"{message.type}: {message.text}")

    def asked(dialog: Dialog) -> None:
        moderator.wrong.append(f"a dialog: {dialog.message}")
        dialog.dismiss()

    page.on("console", said)
    page.on("dialog", asked)
    page.on("pageerror", lambda error: moderator.wrong.append(f"a script: {error}"))
    try:
        page.goto(f"{desk.address}/name?back={quote('/')}")
        page.get_by_label("Your name").fill(name)
        page.get_by_role("button", name="Continue").click()
        page.wait_for_url(f"{desk.address}/")
        yield moderator
        assert not moderator.wrong, moderator.wrong
    finally:
        context.close()


def shots_folder(otherwise: Path) -> Path:
    """Where screenshots are kept: the folder named by the environment's SCREENSHOTS, or another."""
    folder = Path(os.environ.get("SCREENSHOTS") or otherwise)
    folder.mkdir(parents=True, exist_ok=True)
    return folder
