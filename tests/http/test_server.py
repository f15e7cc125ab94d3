"""An answer names no version of the programs that make it, whoever asks and however."""

import asyncio

import pytest
from neardup.http.server import serve_metrics

from tests.support.servers import free_port


async def test_no_answer_names_a_version(capfd: pytest.CaptureFixture[str]) -> None:
    listen = f"127.0.0.1:{free_port()}"
    async with serve_metrics(listen, "run", lambda: {"healthy": True}):
        for sent in (b"GET /healthz HTTP/1.0", b"GET /nothing HTTP/1.0", b"no HTTP", b"GET / HTTP/1.1\r\nX: \0"):
            reader, writer = await asyncio.open_connection(*listen.split(":"))
            writer.write(sent + b"\r\n\r\n")
            answer = await asyncio.wait_for(reader.read(10_000), 30)
            writer.close()
            assert b"HTTP/1." in answer
            assert b"Server: neardup\r\n" in answer and b"aiohttp" not in answer, answer
    assert "Traceback" not in capfd.readouterr().err
