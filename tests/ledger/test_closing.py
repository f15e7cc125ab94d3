"""Closing a connection to the ledger waits for its calls."""

import asyncio
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from neardup.ledger import Ledger, connect, read


@pytest.mark.parametrize("opened", [connect, read])
async def test_closing_waits_for_the_current_call(opened: Callable[[Path], sqlite3.Connection], tmp_path: Path) -> None:
    """SQLite does not survive a file that is closed while it is read."""
    connect(tmp_path / "ledger.db").close()
    ledger, begun, go = Ledger(tmp_path / "ledger.db", opened), threading.Event(), threading.Event()
    ended = []

    def call(db: sqlite3.Connection) -> None:
        begun.set()
        go.wait()
        ended.append(db.execute("SELECT count(*) FROM stories").fetchone())

    calling = asyncio.create_task(ledger.do(call))
    await asyncio.to_thread(begun.wait)
    calling.cancel()
    closing = asyncio.create_task(asyncio.to_thread(ledger.close))
    await asyncio.wait([calling])
    go.set()
    await closing
    assert ended == [(0,)]
