"""Laws: a fork server that is killed is replaced, and neither it nor a reader process outlives its owner."""

import errno
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path

import pytest
from neardup.config import Content
from neardup.core.page import PageFingerprinted
from neardup.core.text.extraction import Extraction
from neardup.errors import Transient
from neardup.pages import fork_server
from neardup.pages.reader_pool import ReaderPool
from neardup.records import Story

from tests.support.forked_readers import ends_within
from tests.support.languages import TAMIL, TEXTS
from tests.support.s3_server import object_server
from tests.support.servers import REGION

GIVE_UP_SECONDS = 30.0
KEYS = "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"
STORY = Story(1, TAMIL, "page.html")
# Prints the ids of the server and of the readers that it forked, and waits to be killed.
OWNER = """
import asyncio, json, signal
from neardup.config import Content
from neardup.core.text.extraction import Extraction
from neardup.errors import Transient
from neardup.pages import fork_server
from neardup.pages.reader_pool import ReaderPool

async def own():
    pool = ReaderPool(Content(url="file:/"), Extraction(), 8)
    await pool.start()
    print(json.dumps([fork_server.get_server().pid, *pool.pids]), flush=True)
    signal.pause()

asyncio.run(own())
"""


@asynccontextmanager
async def reading(folder: Path) -> AsyncIterator[ReaderPool]:
    (folder / "page.html").write_text(f"<p>{TEXTS[TAMIL]} {TEXTS[TAMIL]}</p>", encoding="utf-8")
    async with aclosing(ReaderPool(Content(url=f"file:{folder}"), Extraction(), 8)) as pool:
        yield pool


async def test_pools_share_a_server_until_it_is_killed(tmp_path: Path) -> None:
    servers = []
    for killed in (False, True, False):
        async with reading(tmp_path) as pool:
            assert await pool.read(STORY, None)
            servers.append(server := fork_server.get_server().pid)
            if killed:
                os.kill(server, signal.SIGKILL)
                assert await pool.read(STORY, None), "the processes of a pool depend on the server"
    assert servers[0] == servers[1] != servers[2]


async def test_a_process_has_the_environment_of_its_own_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise it would send the credentials that the server started with."""
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    for name in KEYS:
        monkeypatch.delenv(name, raising=False)
    fork_server.end_server()  # the next one starts without credentials
    async with reading(tmp_path) as pool:
        await pool.start()
        server = fork_server.get_server().pid
    for name in KEYS:
        monkeypatch.setenv(name, "testing")
    with object_server(tmp_path, "stories") as endpoint:
        content = Content(url="s3://stories", endpoint=endpoint, region=REGION, path_style=True)
        async with aclosing(ReaderPool(content, Extraction(), 8)) as pool:
            assert isinstance(await pool.read(STORY, None), PageFingerprinted)
    assert fork_server.get_server().pid == server


def test_nothing_outlives_an_owner_that_is_killed() -> None:
    with subprocess.Popen([sys.executable, "-c", OWNER], stdout=subprocess.PIPE) as owner:
        assert owner.stdout is not None
        pids = json.loads(owner.stdout.readline())
        ends = [os.pidfd_open(pid) for pid in pids]
        owner.kill()
    for pid, end in zip(pids, ends, strict=True):
        assert ends_within(end, GIVE_UP_SECONDS), f"{pid} of {pids} still runs"
        os.close(end)


def test_a_system_that_refuses_a_process_is_a_passing_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    fork_server.end_server()
    with monkeypatch.context() as patch:
        patch.setattr(subprocess, "Popen", refuse)
        fork_server.start_server()
        with pytest.raises(Transient, match="cannot start a reader process: Resource temporarily unavailable"):
            fork_server.get_server()
    assert fork_server.get_server().pid, "no server starts once the system allows one"
