"""Laws: a file is written atomically, to a disk and to S3; until then the old content stays."""

import asyncio
import gc
import resource
import signal
import subprocess
import sys
from asyncio import CancelledError
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from random import Random

import pytest
import stamina
from botocore.exceptions import ClientError
from msgspec.structs import replace
from neardup.config import Content
from neardup.errors import Fatal, Transient
from neardup.moderation.export.formats import write_csv, write_jsonl, write_parquet, write_xlsx
from neardup.moderation.export.tables import PAIRS, ExportRow
from neardup.moderation.export.target import write_atomically, write_to_target
from neardup.option_values import FORMATS, Format
from neardup.s3.objects import _read_part

from tests.support.exported_pairs import page, pair
from tests.support.servers import REGION, Aws, free_port

WRITE: dict[str, Callable[[Path, Iterable[ExportRow]], None]] = {
    "csv": partial(write_csv, table=PAIRS),
    "jsonl": write_jsonl,
    "xlsx": partial(write_xlsx, table=PAIRS),
    "parquet": partial(write_parquet, table=PAIRS),
    "html": page,
}
LOCAL_CONTENT = Content(url="file:.")
LARGE = 12_000_000  # bytes: more than one part of an upload


def many(count: int = 2000) -> Iterator[ExportRow]:
    drawn = Random(1)
    for n in range(count):
        yield pair(flag_id=n, story_title="".join(chr(drawn.randrange(0x900, 0x97F)) for _ in range(100)))


@contextmanager
def no_file_larger_than(size: int) -> Iterator[None]:
    """Limit file sizes, to simulate a full disk: Python ignores SIGXFSZ, so a write fails."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("form", FORMATS)
def test_full_disk_leaves_the_old_file(tmp_path: Path, form: Format) -> None:
    path = tmp_path / f"flags.{form}"
    path.write_bytes(b"old")
    with (
        no_file_larger_than(50_000),
        pytest.raises(Fatal, match=rf"cannot write .*flags\.{form}: .*too large") as error,
    ):
        write_atomically(path, lambda file: WRITE[form](file, many()))
    assert "\n" not in str(error.value)
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == {path.name: b"old"}


@pytest.mark.filterwarnings("error::pytest.PytestUnraisableExceptionWarning")  # Python prints them on a terminal
def test_a_workbook_that_does_not_fit_is_one_error() -> None:
    with pytest.raises(OSError, match="No space left"):
        WRITE["xlsx"](Path("/dev/full"), many(3))
    gc.collect()


KILLED_WRITER = """
import os, signal, sys
from pathlib import Path
from neardup.moderation.export.target import write_atomically
from tests.moderation.export.test_target import WRITE, many

def killed_midway():
    for n, one in enumerate(many()):
        if n == 1500:
            os.kill(os.getpid(), signal.SIGKILL)
        yield one

write_atomically(Path(sys.argv[2]), lambda file: WRITE[sys.argv[1]](file, killed_midway()))
"""


@pytest.mark.parametrize("form", FORMATS)
def test_killed_writer_leaves_the_old_file(tmp_path: Path, form: Format) -> None:
    path = tmp_path / f"flags.{form}"
    path.write_bytes(b"old")
    ended = subprocess.run([sys.executable, "-c", KILLED_WRITER, form, str(path)], capture_output=True, check=False)
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    assert path.read_bytes() == b"old"


def test_symbolic_link_is_followed(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "folder" / "flags")
    asyncio.run(write_to_target(tmp_path / "link", LOCAL_CONTENT, lambda file: file.write_bytes(b"new")))
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "folder" / "flags").read_bytes() == b"new"


@pytest.fixture
def store(aws: Aws) -> Content:
    aws.bucket("flags")
    return Content(url="file:.", endpoint=aws.endpoint, region=REGION, path_style=True)


def objects(aws: Aws) -> dict[str, bytes]:
    client = aws.client("s3")
    keys = [entry["Key"] for entry in client.list_objects_v2(Bucket="flags").get("Contents", [])]
    return {key: client.get_object(Bucket="flags", Key=key)["Body"].read() for key in keys}


@pytest.mark.parametrize("key", ["flags.csv", "a/b c/ഫ്ലാഗ്.csv"])
async def test_object_has_the_written_content(aws: Aws, store: Content, key: str) -> None:
    for body in (b"", b"short", bytes(LARGE)):
        assert await write_to_target(f"s3://flags/{key}", store, partial(Path.write_bytes, data=body)) == len(body)
        assert objects(aws) == {key: body}, "the old object is not replaced as a whole"


async def test_failed_write_leaves_the_old_object(aws: Aws, store: Content) -> None:
    await write_to_target("s3://flags/x/flags.csv", store, lambda file: file.write_bytes(b"old"))

    def failing(file: Path) -> None:
        file.write_bytes(bytes(LARGE))
        raise LookupError("no such day")

    with pytest.raises(LookupError):
        await write_to_target("s3://flags/x/flags.csv", store, failing)
    assert objects(aws) == {"x/flags.csv": b"old"}


@pytest.mark.parametrize("ending", [ClientError({"Error": {"Code": "SlowDown"}}, "UploadPart"), CancelledError()])
async def test_interrupted_upload_leaves_no_parts(
    aws: Aws, store: Content, monkeypatch: pytest.MonkeyPatch, ending: BaseException
) -> None:
    await write_to_target("s3://flags/k", store, lambda file: file.write_bytes(b"old"))
    read = _read_part

    def part(file: Path, number: int) -> bytes:
        if number == 1:
            raise ending
        return read(file, number)

    monkeypatch.setattr("neardup.s3.objects._read_part", part)
    with stamina.set_testing(True, attempts=1), pytest.raises((Transient, CancelledError)):
        await write_to_target("s3://flags/k", store, lambda file: file.write_bytes(bytes(LARGE)))
    assert not aws.client("s3").list_multipart_uploads(Bucket="flags").get("Uploads"), (
        "parts were left, which cost money"
    )
    assert objects(aws) == {"k": b"old"}


async def test_failing_store_is_reported_in_one_line(aws: Aws, store: Content) -> None:
    elsewhere = replace(store, endpoint=f"http://127.0.0.1:{free_port()}")
    with stamina.set_testing(True, attempts=2):
        for target, content, kind in (("s3://none/k", store, Fatal), ("s3://flags/k", elsewhere, Transient)):
            with pytest.raises(kind, match=f"^cannot write {target}: ") as error:
                await write_to_target(target, content, lambda file: file.write_bytes(b"new"))
            assert "\n" not in str(error.value)
    assert objects(aws) == {}


async def test_missing_credentials_are_reported_in_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    with pytest.raises(Fatal, match=r"cannot write s3://flags/k: .*no AWS credentials found"):
        await write_to_target("s3://flags/k", LOCAL_CONTENT, lambda file: file.write_bytes(b"new"))
