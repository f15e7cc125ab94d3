"""The desk's queue of translated and retold pairs is apart from all others; a verdict there counts as any other.

`detection.same_author` says whether the queues of the desk have the pairs that one author wrote.
"""

import re
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import pytest
from neardup.config import Detection
from neardup.core.verify.tiers import PARTIAL, RETOLD, TRANSLATED
from neardup.errors import Conflict
from neardup.ledger import connect, meaning_flags
from neardup.ledger.meaning_flags import ChunkPair, MeaningFlag
from neardup.moderation.desk.deciding import NewVerdict
from neardup.moderation.desk.meaning import undo_latest
from neardup.moderation.desk.moderators import Moderator
from neardup.records import Fingerprinted, Story, Verdict

from tests.support.builders import commit, fingerprint_of, fingerprinted, flag_pair, ledger_in_memory
from tests.support.desk_client import Client, get, hidden_fields, named_client, post
from tests.support.languages import HINDI, TAMIL
from tests.support.verdicts import give_verdict

EARLIER, LATER, RETELLING = 1, 2, 3


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[Client]:
    with closing(connect(tmp_path / "neardup.db")) as db:
        commit(
            db,
            fingerprinted(EARLIER, 101, HINDI),
            fingerprinted(LATER, 102, TAMIL),
            fingerprinted(RETELLING, 103, HINDI),
        )
        hash_of = dict(db.execute("SELECT id, text_hash FROM stories"))
        found = [
            MeaningFlag(a, b, kind, margin, [ChunkPair(0, 0, 0.71), ChunkPair(1, 0, 0.5)], hash_of[a], hash_of[b])
            for a, b, kind, margin in ((EARLIER, LATER, TRANSLATED, 0.41), (EARLIER, RETELLING, RETOLD, 0.52))
        ]
        meaning_flags.put(db, found, "m")
    async with named_client(tmp_path) as opened:
        yield opened


async def test_the_queue_has_the_widest_margin_first_and_no_other_page_has_its_pairs(client: Client) -> None:
    status, queue = await get(client, "/meaning")
    assert status == 200
    assert queue.index(f"/meaning/{EARLIER}/{RETELLING}") < queue.index(f"/meaning/{EARLIER}/{LATER}")
    assert "margin 0.52" in queue
    _, only = await get(client, "/meaning?kind=translated")
    assert f"/meaning/{EARLIER}/{RETELLING}" not in only
    assert "/meaning/" not in (await get(client, "/"))[1]
    assert (await get(client, f"/pair/{EARLIER}/{LATER}"))[0] == 404


async def test_a_verdict_leads_to_the_next_pair_and_can_be_undone(client: Client) -> None:
    path = f"/meaning/{EARLIER}/{RETELLING}"
    _, page = await get(client, path)
    assert "0.71" in page
    form = hidden_fields(page)
    assert await post(client, f"{path}/verdict", form | {"verdict": "plagiarism", "note": "retold"}) == 303
    assert await post(client, f"{path}/verdict", form | {"verdict": "not_similar"}) == 409, "it was decided meanwhile"
    assert path not in (await get(client, "/meaning"))[1]
    _, decided = await get(client, path)
    assert "retold" in decided
    _, statistics = await get(client, "/statistics")
    by_margin = statistics.partition("Margin, from")[2]
    assert re.search(r"Retold.*?0\.50</td>", by_margin, re.DOTALL), "precision by kind and margin"
    assert await post(client, f"{path}/undo", hidden_fields(decided, "undone")) == 303
    assert path in (await get(client, "/meaning"))[1]


def test_a_decision_on_a_case_is_not_undone_at_one_of_its_pairs() -> None:
    """Nor by who may not decide all of them: here a story of one pair was rewritten, and retells what it copied."""
    with closing(ledger_in_memory()) as db:
        commit(db, fingerprinted(1, 101, HINDI), fingerprinted(2, 102, HINDI), fingerprinted(3, 103, TAMIL))
        for copy in (2, 3):
            flag_pair(db, 1, copy, PARTIAL)
        give_verdict(db, [(1, 2), (1, 3)], Verdict.PLAGIARISM)
        commit(db, fingerprinted(2, 104, HINDI))
        hash_of = dict(db.execute("SELECT id, text_hash FROM stories"))
        meaning_flags.put(db, [MeaningFlag(1, 2, RETOLD, 0.5, [ChunkPair(0, 0, 0.7)], hash_of[1], hash_of[2])], "m")
        before = list(db.iterdump())
        for spoken in ((HINDI,), ()):
            seen = str(meaning_flags.identify_state(db, 1, 2))
            given = NewVerdict(Verdict.REOPENED, "", Moderator("Chitra", languages=spoken), seen)
            with pytest.raises(Conflict, match="of 2 pairs: undo it at its case"):
                undo_latest(db, (1, 2), given)
        assert list(db.iterdump()) == before


async def test_a_pair_that_is_not_flagged_is_not_found(client: Client) -> None:
    assert (await get(client, f"/meaning/{LATER}/{RETELLING}"))[0] == 404


async def test_pairs_of_one_author_are_counted_and_shown_on_request(client: Client, tmp_path: Path) -> None:
    with closing(connect(tmp_path / "neardup.db")) as db:
        db.execute("UPDATE stories SET author_id = 'asha' WHERE id IN (?, ?)", (EARLIER, LATER))
    path = f"/meaning/{EARLIER}/{LATER}"
    _, queue = await get(client, "/meaning")
    assert path not in queue
    assert "1 pair of one author is not shown." in queue
    _, shown = await get(client, "/meaning?same_author=shown")
    assert path in shown


@pytest.mark.parametrize("keeps", [False, True])
async def test_pairs_of_one_author_are_in_the_queues_only_if_they_are_kept(tmp_path: Path, keeps: bool) -> None:
    with closing(connect(tmp_path / "neardup.db")) as db:
        listed = [Story(n, HINDI, author_id="asha") for n in (1, 2, 3)]
        commit(db, *(Fingerprinted(story, fingerprint_of(bytes([story.id] * 16)), None) for story in listed))
        flag_pair(db, 1, 2, PARTIAL)
        hash_of = dict(db.execute("SELECT id, text_hash FROM stories"))
        retold = MeaningFlag(1, 3, RETOLD, 0.5, [ChunkPair(0, 0, 0.7)], hash_of[1], hash_of[3])
        meaning_flags.put(db, [retold], "m")
    async with named_client(tmp_path, detection=Detection(same_author="keep" if keeps else "hide")) as client:
        for queue, listed_at in (("/", "/case/1"), ("/meaning", "/meaning/1/3")):
            _, page = await get(client, queue)
            assert (f'href="{listed_at}' in page) == keeps, queue
            assert ("left out" in page or "is not shown" in page) != keeps, queue
            assert "is shown" not in page, "what the configuration keeps is not to be hidden by a link"
