"""`detection.same_author` says whether the queues of the desk have the pairs that one author wrote."""

from contextlib import closing
from pathlib import Path

import pytest
from neardup.config import Detection
from neardup.core.verify.tiers import PARTIAL, RETOLD
from neardup.ledger import connect, meaning_flags
from neardup.ledger.meaning_flags import ChunkPair, MeaningFlag
from neardup.records import Fingerprinted, Story

from tests.support.builders import commit, fingerprint_of, flag_pair
from tests.support.desk_client import get, named_client
from tests.support.languages import HINDI


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
