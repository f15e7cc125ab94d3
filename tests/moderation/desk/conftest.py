"""Fixtures of the desk's tests: a browser, and ledgers filled by the real command."""

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from neardup.ledger import connect, transaction
from playwright.sync_api import Browser

from tests.support import desk_browser as browsers
from tests.support.command import Neardup, embedded


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with browsers.chromium() as launched:
        yield launched


@pytest.fixture(scope="session")
def shots(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder for screenshots: $SCREENSHOTS, or `screenshots` in pytest's temporary folder."""
    return browsers.shots_folder(tmp_path_factory.getbasetemp() / "screenshots")


def filled(folder: Path, config: str) -> Neardup:
    """A command whose ledger has been backfilled by this configuration."""
    neardup = Neardup(folder, {k: v for k, v in os.environ.items() if not k.startswith("NEARDUP_")})
    neardup.configure(config)
    ended = neardup("backfill", "--json")
    assert ended.code == 0, ended.err
    return neardup


@pytest.fixture(scope="session")
def samples(tmp_path_factory: pytest.TempPathFactory) -> Neardup:
    """A ledger of the samples, shared by all tests: tests that change verdicts use `private_copy`."""
    return filled(tmp_path_factory.mktemp("samples"), embedded())


@pytest.fixture
def private_copy(tmp_path: Path) -> Callable[[Neardup], Neardup]:
    """Makes a copy of a command and its ledger for one test."""

    def copy(of: Neardup) -> Neardup:
        folder = tmp_path / "copy"
        shutil.copytree(of.folder, folder)
        copied = Neardup(folder, of.env)
        with closing(connect(copied.ledger)) as db, transaction(db):
            db.execute("DELETE FROM leases")  # those of the cases that other tests opened
        return copied

    return copy
