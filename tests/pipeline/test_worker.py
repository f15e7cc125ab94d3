"""Every listed story has exactly one outcome with a named reason, whatever its page contains."""

import gzip
import os
from collections.abc import Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace
from neardup.config import Content
from neardup.core.languages import SHIPPED
from neardup.core.text.extraction import Extraction
from neardup.errors import Transient
from neardup.pages.results import PageResult, read_singly
from neardup.pages.store import Pages
from neardup.pipeline.worker import Known, Worker
from neardup.records import (
    BadRow,
    Dead,
    DeadLettered,
    Fingerprinted,
    Language,
    Mark,
    MarkReason,
    Outcome,
    Skip,
    Skipped,
    StoredVersion,
    Story,
)

from tests.support.builders import fetch_page, worker_of
from tests.support.languages import HINDI, MARATHI, TAMIL
from tests.support.paths import SAMPLES
from tests.support.servers import REGION, Aws

STORY = Story(1, HINDI, "page.html", updated_at=1000)
PROSE = "राम अपने गाँव के पुराने स्कूल में हर सुबह जल्दी पहुँच जाता था और दीवार पर लिखता था।"
MARKED = (Skip.EMPTY, Skip.NOT_TEXT)
HIDDEN = Mark(MarkReason.HIDDEN, "100 %")
PAGE = f"<html><head><meta charset=utf-8></head><body><p>{PROSE}</p></body></html>"


async def outcome(
    folder: Path, page: bytes | None, known: StoredVersion | None = None, story: Story = STORY, body: str = ""
) -> Outcome:
    if page is not None:
        (folder / "page.html").write_bytes(page)
    content = Content(url=f"file:{folder}", max_bytes=1_000_000)
    return await worker_of(content, Extraction(body), known=lambda _: known).outcome(story)


@pytest.mark.parametrize(
    ("page", "reason"),
    [
        (None, Skip.MISSING),
        (b"", Skip.EMPTY),
        (b" \n ", Skip.EMPTY),
        (b"<html><body><img src=x></body></html>", Skip.EMPTY),
        (b"<p>word</p>", Skip.TOO_SHORT),
        (b"\x89PNG\r\n\x1a\n" + os.urandom(5000), Skip.NOT_TEXT),
        (b"PK\x03\x04" + os.urandom(5000), Skip.NOT_TEXT),
        (b"<p hidden>word " * 20, Skip.EMPTY),
    ],
)
async def test_a_page_without_a_story_is_skipped_with_a_reason(
    tmp_path: Path, page: bytes | None, reason: Skip
) -> None:
    made = await outcome(tmp_path, page)
    assert isinstance(made, Skipped) and made.reason is reason
    hidden = (HIDDEN,) if page is not None and b"hidden" in page else ()
    marks = hidden + ((Mark(MarkReason(reason), ""),) if reason in MARKED else ())
    assert made.marks == (None if page is None else marks), "a page that is gone says nothing, and any other replaces"


async def test_a_page_without_the_configured_body_is_skipped(tmp_path: Path) -> None:
    assert await outcome(tmp_path, PAGE.encode(), body=".story") == Skipped(STORY, Skip.NO_BODY, marks=())


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
async def test_the_encoding_does_not_change_the_fingerprint(tmp_path: Path, encoding: str) -> None:
    text = PAGE.replace("<meta charset=utf-8>", "") if "16" in encoding else PAGE
    made = await outcome(tmp_path, text.encode(encoding))
    plain = await outcome(tmp_path, PAGE.encode())
    assert isinstance(made, Fingerprinted) and isinstance(plain, Fingerprinted), made
    assert made.fingerprint == plain.fingerprint


async def test_a_bad_row_keeps_its_reason(tmp_path: Path) -> None:
    row = BadRow("row:1", Dead.BAD_ID, "no id")
    worker = worker_of(Content(url=f"file:{tmp_path}"))
    assert await worker.outcome(row) == DeadLettered(row, Dead.BAD_ID, "no id")


async def test_a_crash_is_dead_lettered_not_raised(tmp_path: Path) -> None:
    async def broken(story: Story, etag: str | None) -> PageResult:
        raise ZeroDivisionError("oh")

    async def unknown(_: Sequence[int]) -> dict[int, Known]:
        return {}

    made = await Worker(unknown, read_singly(broken), SHIPPED).outcome(STORY)
    assert made == DeadLettered(STORY, Dead.CRASHED, "ZeroDivisionError: oh")


async def test_a_story_in_a_language_that_was_removed_is_dead_lettered(tmp_path: Path) -> None:
    story = replace(STORY, language=Language("KLINGON"))
    made = await worker_of(Content(url=f"file:{tmp_path}")).outcome(story)
    assert made == DeadLettered(story, Dead.BAD_LANGUAGE, "unknown language 'KLINGON'")


async def test_an_error_of_the_ledger_ends_the_run(tmp_path: Path) -> None:
    def locked(_: int) -> StoredVersion | None:
        raise Transient("the ledger is locked")

    with pytest.raises(Transient):
        await worker_of(Content(url=f"file:{tmp_path}"), known=locked).outcome(STORY)


def known_of(made: Fingerprinted, **changes: object) -> StoredVersion:
    facts = {
        "language": HINDI,
        "text_hash": made.fingerprint.text_hash,
        "etag": made.etag,
        "updated_at": 1000,
        "name": None,
        "number": 1,
        "path": STORY.path,
    }
    return StoredVersion(**(facts | changes))  # type: ignore[arg-type]


async def test_an_unchanged_story_is_skipped_as_early_as_possible(tmp_path: Path) -> None:
    made = await outcome(tmp_path, PAGE.encode())
    assert isinstance(made, Fingerprinted)
    later = Story(1, HINDI, "page.html", updated_at=2000)
    (tmp_path / "page.html").rename(tmp_path / "gone.html")
    same_time = await outcome(tmp_path, None, known_of(made))
    assert same_time == Skipped(STORY, Skip.UNCHANGED, was_asked=False), "an unchanged time must need no request"
    older = await outcome(tmp_path, None, known_of(made, updated_at=5000))
    assert older == Skipped(STORY, Skip.SUPERSEDED, was_asked=False)
    (tmp_path / "gone.html").rename(tmp_path / "page.html")
    assert await outcome(tmp_path, None, known_of(made), later) == Skipped(later, Skip.UNCHANGED), (
        "an unchanged ETag must skip the story"
    )
    by_text = await outcome(tmp_path, PAGE.replace("<p>", "<p class=x>").encode(), known_of(made), later)
    assert isinstance(by_text, Skipped) and by_text.reason == Skip.UNCHANGED and by_text.etag, (
        "an unchanged text must skip the story"
    )


async def test_a_story_whose_language_changed_is_fingerprinted(tmp_path: Path) -> None:
    made = await outcome(tmp_path, PAGE.encode())
    assert isinstance(made, Fingerprinted)
    again = await outcome(tmp_path, None, known_of(made, language=MARATHI))
    assert isinstance(again, Fingerprinted)


@pytest.fixture
def s3_content(aws: Aws) -> Content:
    aws.bucket("stories")
    return Content(url="s3://stories/html", endpoint=aws.endpoint, region=REGION, path_style=True, max_bytes=1_000_000)


async def test_pages_from_s3_and_files_have_equal_fingerprints(s3_content: Content, aws: Aws) -> None:
    page = next((SAMPLES / "stories" / "TAMIL").glob("*.html")).read_bytes()
    put = aws.client("s3").put_object
    put(Bucket="stories", Key="html/plain.html", Body=page)
    put(Bucket="stories", Key="html/zipped.html", Body=gzip.compress(page), ContentEncoding="gzip")
    put(Bucket="stories", Key="html/bomb.html", Body=gzip.compress(bytes(50_000_000)), ContentEncoding="gzip")
    worker = worker_of(s3_content, Extraction("article .story, div.post-body", (".share",)))

    async def made(name: str) -> Outcome:
        return await worker.outcome(Story(1, TAMIL, f"{name}.html"))

    plain, zipped = await made("plain"), await made("zipped")
    assert isinstance(plain, Fingerprinted) and isinstance(zipped, Fingerprinted), (plain, zipped)
    assert plain.fingerprint == zipped.fingerprint
    assert plain.etag is not None
    bomb, missing = await made("bomb"), await made("missing")
    assert isinstance(bomb, Skipped) and bomb.reason == Skip.NOT_TEXT, "the bomb holds NULs alone"
    assert isinstance(missing, Skipped) and missing.reason == Skip.MISSING


async def test_a_conditional_get_of_an_unchanged_page_has_no_body(s3_content: Content, aws: Aws) -> None:
    aws.client("s3").put_object(Bucket="stories", Key="html/page.html", Body=PAGE.encode())
    pages = Pages(s3_content)
    first = fetch_page(pages, "page.html")
    assert first is not None and first.body == PAGE.encode()
    assert fetch_page(pages, "page.html", first.etag) is None
