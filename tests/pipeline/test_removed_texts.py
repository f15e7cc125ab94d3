"""Laws: a text that was removed as plagiarism is known again while the verdict stands, and by nothing but its match."""

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from neardup.config import Detection
from neardup.core.verify.tiers import EXACT
from neardup.ledger import Ledger, connect, now_ms, removed_texts, stories
from neardup.pipeline.upkeep import find_returned
from neardup.records import Fingerprinted, Skip, Skipped, Story, Verdict

from tests.support.builders import commit, fingerprint_of
from tests.support.copied_spans import flag_spans, spans_of
from tests.support.languages import HINDI
from tests.support.verdicts import give_verdict, undo

DAY_MS = 86_400_000
SIGNATURE = bytes(range(64))
Step = Callable[["Corpus"], None]


def listed(story_id: int, author: str | None, published: int | None) -> Story:
    return Story(story_id, HINDI, author_id=author, published_at=published, title="शीर्षक", path=f"{story_id}.html")


class Corpus:
    """Story 1 by meera, story 2 by ravi, who copied it, and what comes later."""

    def __init__(self, folder: Path, days: int = 30) -> None:
        self.path = folder / "neardup.db"
        self.db = connect(self.path)
        removed_texts.keep_for(self.db, days, now_ms())
        self.put(1, "meera", 10)
        self.put(2, "ravi", 20)
        flag_spans(self.db, 1, 2, EXACT, spans_of((0, 100)), spans_of((0, 100)))
        self.decision = give_verdict(self.db, [(1, 2)], Verdict.PLAGIARISM)

    def put(self, story_id: int, author: str | None, published: int | None, text: int = 1) -> None:
        made = fingerprint_of(bytes([85 * text] * 16), bytes(reversed(SIGNATURE)) if text != 1 else SIGNATURE)
        commit(self.db, Fingerprinted(listed(story_id, author, published), made, None))

    def vanish(self, story_id: int) -> None:
        commit(self.db, Skipped(listed(story_id, "ravi", 20), Skip.EMPTY))

    async def compare(self) -> None:
        ledger = Ledger(self.path)
        await find_returned(ledger, Detection())
        ledger.close()

    def returned(self) -> set[tuple[int, str | None, str]]:
        found = removed_texts.read_of_stories(self.db, range(1, 10))
        return {(row["story_id"], row["author"], row["removed_author"]) for row in found}


NEW_ACCOUNT = (3, "ravi2", "ravi")


@pytest.mark.parametrize("gone", [Corpus.vanish, lambda corpus, story_id: stories.erase(corpus.db, [story_id])])
@pytest.mark.parametrize("before", [False, True])
async def test_a_renamed_account_is_shown_beside_its_earlier_self(
    tmp_path: Path, gone: Callable[[Corpus, int], None], *, before: bool
) -> None:
    """Whether its story came before the earlier one was removed, or after."""
    corpus = Corpus(tmp_path)
    with closing(corpus.db) as db:

        def come_back() -> None:
            corpus.put(3, "ravi2", 30)
            corpus.put(4, "meera", 40)  # the author of what was copied
            corpus.put(5, "asha", 15)  # copied it before
            corpus.put(6, "asha", 60, text=2)  # another text
            if before:
                for a in (1, 2):
                    flag_spans(db, a, 3, EXACT, spans_of((0, 100)), spans_of((0, 100)))

        if before:
            come_back()
            await corpus.compare()
        gone(corpus, 2)
        assert db.execute("SELECT count(*) FROM stories WHERE id = 2").fetchone() == (0,)
        if not before:
            await corpus.compare()
            come_back()
        await corpus.compare()
        assert corpus.returned() == {NEW_ACCOUNT}
        [match] = removed_texts.read_of_stories(db, [3])
        assert (match["removed_id"], match["kind"]) == (2, EXACT) and match["similarity"] == 1
        earlier, later = removed_texts.read_accounts(db, "ravi2")
        assert [row["removed_author"] for row in earlier] == ["ravi"] and not later
        assert [row["author"] for row in removed_texts.read_accounts(db, "ravi")[1]] == ["ravi2"]
        dump = "\n".join(map(repr, db.execute("SELECT * FROM removed_texts").fetchall()))
        assert "शीर्षक" not in dump and "html" not in dump, "more than the fingerprint is kept"

        corpus.put(3, "ravi2", 30, text=2)
        await corpus.compare()
        assert not corpus.returned(), "the story has another text now"
        corpus.put(3, "ravi2", 30)
        await corpus.compare()
        assert corpus.returned() == {NEW_ACCOUNT}
        removed_texts.keep_for(db, 30, now_ms() + 29 * DAY_MS)
        assert corpus.returned() == {NEW_ACCOUNT}
        removed_texts.keep_for(db, 30, now_ms() + 31 * DAY_MS)
        for table in ("removed_texts", "returned_texts"):
            assert db.execute(f"SELECT count(*) FROM {table}").fetchone() == (0,), f"{table} outlives the time"


@pytest.mark.parametrize(
    "step",
    [
        lambda corpus: undo(corpus.db, corpus.decision),
        lambda corpus: corpus.put(2, "ravi", 20),  # it was removed by mistake
        lambda corpus: stories.forget(corpus.db, 2),
        lambda corpus: stories.forget(corpus.db, 1),  # whose author asks for it
        lambda corpus: removed_texts.keep_for(corpus.db, 0, now_ms()),
    ],
)
async def test_an_honest_author_who_publishes_again_is_no_returning_thief(tmp_path: Path, step: Step) -> None:
    corpus = Corpus(tmp_path)
    with closing(corpus.db):
        corpus.vanish(2)
        corpus.put(3, "ravi2", 30)
        await corpus.compare()
        assert corpus.returned() == {NEW_ACCOUNT}
        step(corpus)
        await corpus.compare()
        assert not corpus.returned()


async def test_nothing_is_kept_of_what_was_forgotten_or_is_no_plagiarism_or_is_not_to_be_kept(tmp_path: Path) -> None:
    def forget(corpus: Corpus) -> None:
        stories.forget(corpus.db, 2)

    def call_it_a_quotation(corpus: Corpus) -> None:
        give_verdict(corpus.db, [(1, 2)], Verdict.QUOTATION)
        corpus.vanish(2)

    def remove(corpus: Corpus) -> None:
        corpus.vanish(2)

    steps: tuple[Step, ...] = (forget, call_it_a_quotation, lambda corpus: corpus.vanish(1))
    for n, step in enumerate((*steps, remove)):
        folder = tmp_path / str(n)
        folder.mkdir()
        corpus = Corpus(folder, days=30 if n < len(steps) else 0)
        with closing(corpus.db) as db:
            step(corpus)
            assert db.execute("SELECT count(*) FROM removed_texts").fetchone() == (0,), n
