"""Fixtures of the desk's tests: a browser, and ledgers filled by the real command."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from neardup.ledger import connect, read, transaction
from playwright.sync_api import Browser

from tests.support import desk_browser as browsers
from tests.support.command import Neardup, embedded, environment


@pytest.fixture(scope="package")  # ends before tests of other packages, which have event loops of their own
def browser() -> Iterator[Browser]:
    with browsers.chromium() as launched:
        yield launched


@pytest.fixture(scope="session")
def shots() -> Path:
    return browsers.shots_folder()


def configured(folder: Path, config: str) -> Neardup:
    """A command with this configuration; there is no ledger yet."""
    neardup = Neardup(folder, environment())
    neardup.configure(config)
    return neardup


def filled(folder: Path, config: str) -> Neardup:
    """A command whose ledger has been backfilled by this configuration."""
    neardup = configured(folder, config)
    ended = neardup("backfill", "--json")
    assert ended.code == 0, ended.err
    return neardup


@pytest.fixture(scope="session")
def samples(tmp_path_factory: pytest.TempPathFactory) -> Neardup:
    """A ledger of the samples, which no test changes."""
    return filled(tmp_path_factory.mktemp("samples"), embedded())


@pytest.fixture(scope="package")
def desk(samples: Neardup, tmp_path_factory: pytest.TempPathFactory) -> Iterator[browsers.Desk]:
    """The desk on a copy of the samples, shared by all tests: those that change verdicts restore the ledger."""
    with browsers.serving(copy_of(samples, tmp_path_factory.mktemp("desk") / "copy")) as shared:
        yield shared


@pytest.fixture(scope="package")
def shared_window(browser: Browser, shots: Path) -> Iterator[browsers.Moderator]:
    """The window of `asha`: Chromium starts two processes for each new one, which takes .1 s of CPU."""
    with browsers.window(browser, shots) as moderator:
        yield moderator


@pytest.fixture
def asha(shared_window: browsers.Moderator, desk: browsers.Desk) -> Iterator[browsers.Moderator]:
    """A moderator who has signed in at the desk, in a window that has nothing of the tests before."""
    width, height = browsers.WIDE
    shared_window.page.set_viewport_size({"width": width, "height": height})
    shared_window.page.emulate_media(media="null")
    shared_window.sign_in(desk, "Asha")
    shared_window.problems = []
    yield shared_window
    problems, shared_window.problems = shared_window.problems, []
    shared_window.page.goto("about:blank")  # so that no page asks the desk for anything while its ledger is restored
    assert not problems, problems


def copy_of(neardup: Neardup, folder: Path) -> Neardup:
    """A copy of a command and its ledger in another folder."""
    shutil.copytree(neardup.folder, folder)
    copied = Neardup(folder, neardup.env)
    restore(copied, neardup)
    return copied


def restore(copied: Neardup, of: Neardup) -> None:
    """Make a copy's ledger as that which it is of, without leases; a desk may serve it meanwhile."""
    with closing(read(of.ledger)) as db, closing(connect(copied.ledger)) as copy:
        db.backup(copy)
        with transaction(copy):
            copy.execute("DELETE FROM leases")


@pytest.fixture
def private_copy(tmp_path: Path) -> Callable[[Neardup], Neardup]:
    """Makes a copy of a command and its ledger for one test."""
    return lambda of: copy_of(of, tmp_path / "copy")
