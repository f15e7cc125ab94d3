"""Laws: a text that was removed as plagiarism is known again while the verdict stands, and by nothing but its match."""

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, closing
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from neardup.config import Detection
from neardup.core.fingerprint.compute import fingerprint
from neardup.core.fingerprint.word_hashes import GRAM, WINDOW
from neardup.core.text.normalize import tokenize
from neardup.core.verify.tiers import EXACT, PASSAGE
from neardup.ledger import Ledger, connect, now_ms, passages, removed_texts, stories
from neardup.ledger.passages import CommonPassage
from neardup.pipeline.passage_sync import PassageSync, open_passages
from neardup.pipeline.returned_texts import find_returned
from neardup.records import Fingerprinted, Language, Skip, Skipped, Story, Verdict

from tests.support.builders import commit, fingerprint_of, flag_spans, spans_of
from tests.support.checked_ledger import checked_ledger, words_of
from tests.support.languages import HINDI, SAMPLED
from tests.support.verdicts import give_verdict, undo

DAY_MS = 86_400_000
SIGNATURE = bytes(range(64))
# So many words have ten passage hashes whatever surrounds them: of each WINDOW adjacent grams one is sampled.
SURE_WORDS = 9 * WINDOW + WINDOW - 1 + GRAM
Step = Callable[["Corpus"], None]


def listed(story_id: int, author: str | None, published: int | None, language: Language = HINDI) -> Story:
    return Story(story_id, language, author_id=author, published_at=published, title="शीर्षक", path=f"{story_id}.html")


class Corpus:
    """Story 1 by meera, story 2 by ravi, who copied it, and what comes later."""

    def __init__(
        self, folder: Path, days: int = 30, words: Sequence[str] | None = None, language: Language = HINDI
    ) -> None:
        self.path, self.language = folder / "neardup.db", language
        self.db = connect(self.path)
        removed_texts.keep_for(self.db, days, now_ms())
        for story_id, author in ((1, "meera"), (2, "ravi")):
            if words is None:
                self.put(story_id, author, 10 * story_id)
            else:
                self.write(story_id, author, 10 * story_id, words)
        flag_spans(self.db, 1, 2, EXACT, spans_of((0, 100)), spans_of((0, 100)))
        self.decision = give_verdict(self.db, [(1, 2)], Verdict.PLAGIARISM)

    def put(self, story_id: int, author: str | None, published: int | None, text: int = 1) -> None:
        made = fingerprint_of(bytes([85 * text] * 16), bytes(reversed(SIGNATURE)) if text != 1 else SIGNATURE)
        commit(self.db, Fingerprinted(listed(story_id, author, published), made, None))

    def write(self, story_id: int, author: str, published: int, words: Sequence[str]) -> None:
        """Put a story with the fingerprint of its words."""
        story = listed(story_id, author, published, self.language)
        commit(self.db, Fingerprinted(story, fingerprint(tokenize(" ".join(words))), None))

    def vanish(self, story_id: int) -> None:
        commit(self.db, Skipped(listed(story_id, "ravi", 20), Skip.EMPTY))

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[tuple[Ledger, PassageSync]]:
        with closing(Ledger(self.path)) as ledger, closing(await open_passages(ledger)) as index:
            yield ledger, PassageSync(index, ledger)

    async def settle(self) -> None:
        """Move the passage hashes from the ledger to segments, and merge these."""
        async with self.opened() as (_, sync):
            await sync.settle(asyncio.Event())

    async def compare(self) -> None:
        async with self.opened() as (ledger, sync):
            await find_returned(ledger, sync, Detection())

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

    def lose_the_verdict(corpus: Corpus) -> None:
        """As imports once did, of a verdict that stood because a later one was undone."""
        corpus.db.execute("DELETE FROM verdicts")
        corpus.vanish(2)

    steps: tuple[Step, ...] = (forget, call_it_a_quotation, lambda corpus: corpus.vanish(1), lose_the_verdict)
    for n, step in enumerate((*steps, remove)):
        folder = tmp_path / str(n)
        folder.mkdir()
        corpus = Corpus(folder, days=30 if n < len(steps) else 0)
        with closing(corpus.db) as db:
            step(corpus)
            assert db.execute("SELECT count(*) FROM removed_texts").fetchone() == (0,), n


def shuffled(words: Sequence[str], seed: int) -> list[str]:
    return random.Random(seed).sample(words, len(words))


@settings(max_examples=20)
@given(
    st.sampled_from(SAMPLED),
    st.integers(0, 600 - SURE_WORDS),
    st.lists(st.integers(0, 700), min_size=2, max_size=2),
    st.sampled_from(["in the ledger", "in segments", "in merged segments"]),
    st.integers(0),
)
def test_a_part_is_known_whatever_surrounds_it_and_the_same_words_in_another_order_are_not(
    language: Language, start: int, around: list[int], where: str, seed: int
) -> None:
    words = words_of(language, "a", 600)
    before, after = (words_of(language, name, count) for name, count in zip("bc", around, strict=True))
    with TemporaryDirectory() as folder:
        corpus = Corpus(Path(folder), words=words, language=language)
        [number] = corpus.db.execute("SELECT number FROM stories WHERE id = 2").fetchone()
        with closing(corpus.db):
            if where != "in the ledger":
                asyncio.run(corpus.settle())
            corpus.vanish(2)
            corpus.write(3, "ravi2", 30, [*before, *words[start : start + SURE_WORDS], *after])
            corpus.write(4, "asha", 40, [*before, *shuffled(words[::2], seed), *words_of(language, "d", 300), *after])
            if where == "in merged segments":
                asyncio.run(corpus.settle())
                assert not len(asyncio.run(hashes_of(corpus, number))), "no merge dropped the removed version"
            asyncio.run(corpus.compare())
            assert corpus.returned() == {NEW_ACCOUNT}, where


async def hashes_of(corpus: Corpus, number: int) -> passages.Hashes:
    async with corpus.opened() as (_, sync):
        return sync.index.read_hashes([number])[number]


async def test_a_disclaimer_that_many_stories_have_is_no_part_of_a_removed_text(tmp_path: Path) -> None:
    disclaimer, own = words_of(HINDI, "d", SURE_WORDS), words_of(HINDI, "a", 600)
    corpus = Corpus(tmp_path, words=[*own, *disclaimer])
    with closing(corpus.db) as db:
        hashes = np.frombuffer(fingerprint(tokenize(" ".join(disclaimer))).passages, np.uint32).tolist()
        corpus.vanish(2)
        corpus.write(3, "asha", 30, [*words_of(HINDI, "b", 400), *disclaimer])
        await corpus.compare()
        assert {row[0] for row in corpus.returned()} == {3}, "a part that few stories have"
        passages.record_common(db, [CommonPassage(HINDI, hash_, 51, None, 99) for hash_ in hashes])
        corpus.write(4, "asha", 40, [*words_of(HINDI, "c", 400), *disclaimer])
        corpus.write(5, "ravi2", 50, [*own[:SURE_WORDS], *words_of(HINDI, "e", 400), *disclaimer])
        await corpus.compare()
        assert {row[0] for row in corpus.returned()} == {3, 5}
        [match] = removed_texts.read_of_stories(db, [5])
        assert match["kind"] == PASSAGE and 0.2 < match["similarity"] < 0.6, match


async def test_a_service_knows_a_part_that_comes_back(tmp_path: Path) -> None:
    words = words_of(HINDI, "a", 600)
    async with checked_ledger(tmp_path) as platform:
        do = platform.ledger.do
        await do(removed_texts.keep_for, 30, now_ms())
        await platform.add(HINDI, 1, words, author="meera", published_at=10)
        await platform.add(HINDI, 2, words, author="ravi", published_at=20)
        await platform.index_all()
        await do(flag_spans, 1, 2, EXACT, spans_of((0, 600)), spans_of((0, 600)))
        await do(give_verdict, [(1, 2)], Verdict.PLAGIARISM)
        await do(stories.erase, [2])
        await platform.put(HINDI, 3, [*words_of(HINDI, "b", 400), *words[:SURE_WORDS]], author="ravi2")
        await platform.upkeep.do_due_work()
        [match] = await do(removed_texts.read_of_stories, [3])
        assert (match["author"], match["removed_author"], match["kind"]) == ("ravi2", "ravi", PASSAGE)
