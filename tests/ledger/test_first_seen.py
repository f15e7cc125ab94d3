"""Laws of the log of what was seen first: it only grows, and a ledger whose past differs is recognised."""

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from neardup.core.merkle import compute_root, hash_leaf
from neardup.ledger import connect, first_seen, stories, transaction
from neardup.ledger.first_seen import Entry, History, TreeHead, encode_entry

from tests.support.builders import commit, fingerprinted, ledger_in_memory
from tests.support.sampling import count_examples

# Stories that are seen, with the number of their text, at a time; None for a story that is forgotten.
Seen = tuple[int, int | None]
batches = st.lists(
    st.lists(
        st.tuples(st.integers(1, 6), st.one_of(st.none(), st.integers(0, 2))), max_size=6, unique_by=lambda s: s[0]
    ),
    max_size=8,
)


def digest(story_id: int, text: int) -> bytes:
    return sha256(f"{story_id} {text}".encode()).digest()


def see(db: sqlite3.Connection, batch: Sequence[Seen], now: int) -> None:
    shown = [(story_id, digest(story_id, text)) for story_id, text in batch if text is not None]
    with transaction(db):
        first_seen.append(db, [story_id for story_id, _ in shown], [text for _, text in shown], now)
        first_seen.forget(db, [story_id for story_id, text in batch if text is None])


@settings(deadline=None, max_examples=count_examples(60))
@given(batches)
def test_the_log_only_grows(history: list[list[Seen]]) -> None:
    """Each text of a story has one entry, that of when it was seen first, and no head changes by what comes after."""
    with closing(ledger_in_memory()) as db, pytest.MonkeyPatch.context() as patched:
        patched.setattr(first_seen, "BLOCK", 4)
        leaves, known, heads = list[bytes](), dict[tuple[int, int], Entry](), list[TreeHead]()
        for now, batch in enumerate(history):
            for story_id, text in batch:
                if text is None:
                    known = {key: entry for key, entry in known.items() if key[0] != story_id}
                elif (story_id, text) not in known:
                    known[story_id, text] = Entry(len(leaves), story_id, now, digest(story_id, text))
                    leaves.append(hash_leaf(encode_entry(story_id, now, digest(story_id, text))))
            see(db, batch, now)
            heads.append(first_seen.compute_head(db))
            assert heads[-1] == TreeHead(len(leaves), compute_root(leaves)), f"the head after batch {now}"
            for story_id in range(1, 7):
                expected = sorted(entry for (owner, _), entry in known.items() if owner == story_id)
                assert first_seen.list_entries(db, story_id) == expected, f"the entries of story {story_id}"
        for head in heads:
            assert first_seen.compute_head(db, head.size) == head, f"the head of {head.size} entries changed"


def test_an_edit_that_is_undone_keeps_its_time_and_a_forgotten_story_leaves_no_trace_of_itself() -> None:
    with closing(ledger_in_memory()) as db:
        for text in (1, 2, 1):
            commit(db, fingerprinted(7, text, text_sha256=digest(7, text)))
        assert [entry.text_sha256 for entry in first_seen.list_entries(db, 7)] == [digest(7, 1), digest(7, 2)]
        before = first_seen.compute_head(db)
        stories.forget(db, 7)
        assert first_seen.list_entries(db, 7) == [] and first_seen.compute_head(db) == before
        kept = {value for row in db.execute("SELECT story_id, hash FROM first_seen") for value in row}
        assert not kept & {7, digest(7, 1), digest(7, 2)}, "the log still names the story or its texts"


def test_a_ledger_that_was_restored_or_rewritten_is_recognised(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    with closing(connect(path)) as db:
        for n in range(3):
            see(db, [(n, 1)], now=n)
            assert first_seen.record_head(db, path) is History.WHOLE
        db.execute("DELETE FROM first_seen WHERE position > 0")  # as if a copy was put in its place
        assert first_seen.compare_with_heads(db, first_seen.read_heads(path)) is History.RESTORED
        assert first_seen.record_head(db, path) is History.RESTORED, "a run says it once"
        see(db, [(9, 1), (8, 1), (7, 1)], now=9)
        assert first_seen.record_head(db, path) is History.WHOLE, "what a restored ledger sees is no rewriting"
        db.execute("UPDATE first_seen SET seen_at = 1 WHERE story_id = 9")
        assert first_seen.record_head(db, path) is History.REWRITTEN
        assert first_seen.compare_with_heads(db, first_seen.read_heads(path)) is History.REWRITTEN, "it stays so"
    with (path.parent / "ledger.db.heads").open("a") as file:
        file.write('{"size": 7, "ro')  # a power cut
    assert [head.size for head in first_seen.read_heads(path)] == [1, 1, 4]
