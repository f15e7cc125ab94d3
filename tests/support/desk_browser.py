"""Opens the review desk in a real browser, Chromium without windows, by Playwright; the desk runs as a process."""

import json
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

from axe_playwright_python.base import AXE_SCRIPT  # type: ignore[import-untyped]
from msgspec import Struct, field
from neardup.moderation.desk.moderators import NAME_COOKIE
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Dialog, Page, expect, sync_playwright

from tests.support.command import Neardup
from tests.support.forked_command import ForkedProcess
from tests.support.paths import ROOT

CHROMIUM = "/usr/bin/chromium-headless-shell"
FLAGS = (
    "--no-sandbox",  # Chromium's sandbox does not work as root
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
WIDE, NARROW = (1280, 900), (360, 760)
# A page leaves the time of its last key to the next page, which says when it was painted for the first time.
NOTE_KEY = "onkeydown = () => { sessionStorage.at = performance.timeOrigin + performance.now(); }"
PAINTED = """() => new Promise((resolve) => new PerformanceObserver((painted) => {
  const [first] = painted.getEntriesByName("first-contentful-paint");
  if (first) resolve(performance.timeOrigin + first.startTime - sessionStorage.at);
}).observe({ type: "paint", buffered: true }))"""
TIMEOUT_SECONDS = 120  # a busy machine must not fail a test


@contextmanager
def chromium() -> Iterator[Browser]:
    """A headless Chromium.

    Its event loop occupies this thread while it is open, so no test with an event loop of its own may run meanwhile.
    """
    expect.set_options(timeout=1000 * TIMEOUT_SECONDS)  # as long as a page may take to load
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


class Desk(Struct):
    """`neardup review` as a process; `log` holds the first line of its stderr, and the rest once it has ended."""

    address: str
    neardup: Neardup
    process: ForkedProcess
    log: list[str] = field(default_factory=list)

    def end(self) -> int:
        """Stop it with SIGTERM; returns its exit code."""
        self.process.send_signal(signal.SIGTERM)
        assert self.process.stderr is not None
        self.log.append(self.process.stderr.read())
        return self.process.wait(TIMEOUT_SECONDS)


@contextmanager
def serving(neardup: Neardup, *arguments: str, **env: str) -> Iterator[Desk]:
    """The desk on a free port; when the context ends, it must stop cleanly."""
    with neardup.start("review", *(arguments or ("--listen", "127.0.0.1:0")), env=env) as process:
        try:
            assert process.stderr is not None
            first = process.stderr.readline()
            assert "address" in first, f"the desk did not open: {first}"
            desk = Desk(json.loads(first)["address"].rstrip("/"), neardup, process, [first])
            yield desk
            if process.poll() is None:
                assert desk.end() == 0, desk.log
        finally:
            process.kill()


class Moderator(Struct):
    """A browser window with its own cookies; collects console errors, script errors and dialogs in `problems`."""

    context: BrowserContext
    page: Page
    address: str
    shots: Path
    problems: list[str] = field(default_factory=list)

    def sign_in(self, desk: Desk, name: str) -> None:
        """Use a desk from now on, with the cookie of a name and no other."""
        self.address = desk.address
        self.context.clear_cookies()
        self.context.add_cookies([{"name": NAME_COOKIE, "value": quote(name), "url": desk.address}])

    def go(self, path: str) -> Page:
        """Open a page, again where a busy machine took too long to start the process that reads its texts."""
        self.page.goto(self.address + path)
        while self.page.get_by_text("takes too long to answer").count():
            self.page.reload()
        return self.page

    def shot(self, name: str, *, whole: bool = True) -> None:
        take_shot(self.page, self.shots, name, whole=whole)

    def fits(self) -> bool:
        """Whether the page is at most as wide as the window."""
        self.page.wait_for_load_state()
        self.page.wait_for_load_state()
        return bool(self.page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth"))

    def windows(self) -> Iterator[int]:
        """Show the page in a narrow window and in a wide one; yields the width of each."""
        for width, height in (NARROW, WIDE):
            self.page.set_viewport_size({"width": width, "height": height})
            yield width

    def expect_status(self, status: int) -> None:
        """Drop the problems that the browser reported because of a response with this status."""
        self.problems = [line for line in self.problems if f"status of {status} " not in line]


@contextmanager
def signed_in(browser: Browser, desk: Desk, shots: Path, name: str = "Asha", **options: Any) -> Iterator[Moderator]:
    """A moderator who has the cookie of a name; at the end there must be no problems: no dialog and no error."""
    with window(browser, shots, **options) as moderator:
        moderator.sign_in(desk, name)
        yield moderator


@contextmanager
def window(browser: Browser, shots: Path, **options: Any) -> Iterator[Moderator]:
    """A window for a moderator to sign in; at the end there must be no problems."""
    width, height = options.pop("window", WIDE)
    context = browser.new_context(viewport={"width": width, "height": height}, **options)
    context.set_default_timeout(1000 * TIMEOUT_SECONDS)
    page = context.new_page()
    moderator = Moderator(context, page, "", shots)

    def on_message(message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            moderator.problems.append(f"{message.type}: {message.text}")

    def on_dialog(dialog: Dialog) -> None:
        moderator.problems.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    page.on("console", on_message)
    page.on("dialog", on_dialog)
    page.on("pageerror", lambda error: moderator.problems.append(f"script error: {error}"))
    try:
        yield moderator
        assert not moderator.problems, moderator.problems
    finally:
        context.close()


def decide_by_keys(moderator: Moderator, count: int) -> list[float]:
    """Decide the first `count` cases of the queue by keyboard.

    Returns the milliseconds from the key of each verdict until the browser had painted what follows: the next case, and
    after the last one the queue.
    """
    moderator.context.add_init_script(NOTE_KEY)
    page = moderator.go("/")
    for key in ("j", "Enter"):
        page.keyboard.press(key)
    page.wait_for_url("**/case/**")
    milliseconds = list[float]()
    for _ in range(count):
        decided = page.url
        page.keyboard.press("1")
        expect(page).not_to_have_url(decided)
        milliseconds.append(page.evaluate(PAINTED))
    return milliseconds


def find_violations(page: Page) -> str:
    """The rules of accessibility that a page breaks, as axe-core tests them, a line each; empty if it breaks none."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE_SCRIPT)
    broken = page.evaluate("axe.run({resultTypes: ['violations']}).then((found) => found.violations)")
    return "\n".join(f"{rule['id']}: {rule['help']}: {[node['html'] for node in rule['nodes']]}" for rule in broken)


def shots_folder() -> Path:
    """The folder for screenshots: that of the environment variable SCREENSHOTS, or else var/screens."""
    folder = Path(os.environ.get("SCREENSHOTS") or ROOT / "var" / "screens")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def take_shot(page: Page, shots: Path, name: str, *, whole: bool = False) -> None:
    """Keep a screenshot of the page, or of the window."""
    page.screenshot(path=shots / f"{name}.jpeg", quality=60, full_page=whole)
