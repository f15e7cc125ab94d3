"""The configuration of samples with a tiny model, and what the file of vectors holds."""

import sqlite3
from contextlib import closing

from tests.support.command import Neardup

SINCE = ("--since", "2020-01-01T00:00:00Z")
MEANING = '[meaning]\nkind = "onnx"\nfolder = "tiny"\n'
WORDS = ["king"]


def held(neardup: Neardup) -> set[int]:
    with closing(sqlite3.connect(f"{neardup.ledger}.vectors")) as db:
        return {story_id for (story_id,) in db.execute("SELECT story_id FROM vectors")}


def known(neardup: Neardup) -> set[int]:
    with closing(sqlite3.connect(neardup.ledger)) as db:
        return {story_id for (story_id,) in db.execute("SELECT id FROM stories")}
