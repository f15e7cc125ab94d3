"""Fixtures of the desk's tests: a browser, and ledgers that the real command has filled."""

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests.support import desk_browser as browsers
from tests.support.command import Neardup, embedded


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with browsers.chromium() as launched:
        yield launched


@pytest.fixture(scope="session")
def shots(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the screenshots: $SCREENSHOTS, or `screenshots` among pytest's."""
    return browsers.shots_folder(tmp_path_factory.getbasetemp() / "screenshots")


def filled(folder: Path, config: str) -> Neardup:
    """A command of its own whose ledger holds what the configuration lists."""
    made = Neardup(folder, {k: v for k, v in os.environ.items() if not k.startswith("NEARDUP_")})
    made.configure(config)
    ended = made("backfill", "--json")
    assert ended.code == 0, ended.err
    return made


@pytest.fixture(scope="session")
def samples(tmp_path_factory: pytest.TempPathFactory) -> Neardup:
    """The samples, found by the real command; not to be judged: see `own`."""
    return filled(tmp_path_factory.mktemp("samples"), embedded())


@pytest.fixture
def own(tmp_path: Path) -> Callable[[Neardup], Neardup]:
    """A copy of a command and its ledger, to be judged in."""

    def copy(of: Neardup) -> Neardup:
        folder = tmp_path / "own"
        shutil.copytree(of.folder, folder)
        return Neardup(folder, of.env)

    return copy
