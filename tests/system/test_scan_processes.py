"""Law: a document that a process of a scan cannot digest, or dies of, is read all the same, and no other is lost."""

import asyncio
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

import pytest
from neardup.core.page import Page, PageStory, Unreadable, extract_story
from neardup.core.text.extraction import Extraction
from neardup.pipeline.summary import Watch, ignore_progress
from neardup.scan import processes as scan
from neardup.scan.job import scan_documents, scan_processes
from neardup.scan.request import Request, create_ledger, list_documents, make_config

from tests.support.sample_texts import STORIES

TEXTS = [texts[0] for texts in STORIES.values()]
BAD = b"The text over which a process fails."


def die() -> NoReturn:
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("a killed process went on")


def run_for_ever() -> NoReturn:
    while True:
        """Only the limit of CPU time ends it."""


def use_all_memory() -> NoReturn:
    held = list[bytearray]()
    while True:
        held.append(bytearray(10_000_000))


def fail() -> NoReturn:
    raise RuntimeError("as a library might")


@contextmanager
def unwatched(_: str) -> Iterator[Watch]:
    yield ignore_progress


def scanned(folder: Path) -> tuple[int, int]:
    """The documents of a folder that were compared, and the flags."""
    with (
        create_ledger(None) as ledger,
        list_documents(Request([str(folder)]), ledger.with_name("texts"), None) as listing,
    ):
        config = make_config(ledger, listing.url)
        with scan_processes(config) as processes:
            scanned = scan_documents(config, listing, processes, unwatched, is_kept=False)
            counts = asyncio.run(scanned).summary.counts
    return counts.fingerprinted, counts.flagged.total()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for number, text in enumerate(TEXTS):
        for copy in range(2):
            (tmp_path / f"{number}-{copy}.txt").write_text(text, encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize("fault", [die, run_for_ever, use_all_memory, fail])
@pytest.mark.parametrize("bad_documents", [1, 5])
def test_a_fault_over_a_document_loses_none(
    folder: Path, monkeypatch: pytest.MonkeyPatch, fault: Callable[[], NoReturn], bad_documents: int
) -> None:
    expected = scanned(folder)
    assert expected == (2 * len(TEXTS), len(TEXTS)), "the samples are not what this test supposes"

    def faulty(page: Page, extraction: Extraction) -> PageStory | Unreadable:
        return fault() if BAD in page.body else extract_story(page, extraction)

    monkeypatch.setattr(scan, "extract_story", faulty)
    monkeypatch.setattr(scan, "CPU_SECONDS", 0.5)
    monkeypatch.setattr(scan, "MOST_MEMORY_BYTES", 100_000_000)
    for number in range(bad_documents):
        (folder / f"0-bad-{number}.txt").write_bytes(BAD * (8 + number))
    found, flags = scanned(folder)
    assert found == expected[0] + bad_documents, "a document was lost"
    assert flags >= expected[1], "a pair was lost"


def test_pairs_are_verified_although_the_processes_die(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected, owner = scanned(folder), os.getpid()
    load = scan.Scratch.load

    def faulty(scratch: scan.Scratch, kept: scan.KeptText) -> object:
        return load(scratch, kept) if os.getpid() == owner else die()

    (folder / "near.txt").write_text(f"{TEXTS[0]} and more", encoding="utf-8")
    with_a_near_copy = scanned(folder)
    assert with_a_near_copy[1] > expected[1]
    monkeypatch.setattr(scan.Scratch, "load", faulty)
    assert scanned(folder) == with_a_near_copy
