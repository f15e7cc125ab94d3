"""Fixtures of the tests of embedding."""

import shutil
from pathlib import Path

import pytest

from tests.support.command import Neardup, embedded, environment
from tests.support.tiny_model import MEANING, WORDS, make_model


@pytest.fixture(scope="session")
def backfilled_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("samples")
    neardup = Neardup(folder, environment())
    make_model(folder / "tiny", WORDS)
    neardup.configure(embedded() + MEANING)
    assert neardup("backfill").code == 0
    return folder


@pytest.fixture
def backfilled(backfilled_folder: Path, neardup: Neardup) -> Neardup:
    """The samples after a backfill, with a tiny model, in a folder of the test's own."""
    shutil.copytree(backfilled_folder, neardup.folder, dirs_exist_ok=True)
    return neardup
