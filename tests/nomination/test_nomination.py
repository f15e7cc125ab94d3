"""Laws: every road nominates the same pairs: texts in memory, stories that are looked up, one text, and an audit; and
the limit of matches is one rule, in memory and in the ledger.
"""

import asyncio
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Literal, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from neardup.config import Detection
from neardup.core.candidates.banding import FingerprintArrays
from neardup.core.fingerprint import version as fingerprint_version
from neardup.core.languages import LANGUAGES
from neardup.core.verify.text import Text
from neardup.index.redis import open_redis
from neardup.index.sqlite import SqliteIndex
from neardup.ledger import Ledger, candidates, transaction, versions
from neardup.nomination import lookup
from neardup.nomination.exhaustive import WideMatches, match_fingerprints, match_passages
from neardup.nomination.in_memory import HeldTexts, Pair, nominate_pairs, sample_passages
from neardup.nomination.lookup import StoryProbe, TextNominator, find_unseen, nominate, read_facts
from neardup.nomination.passages import PassageNomination
from neardup.pipeline.index_sync import admit_version, catch_up
from neardup.pipeline.passage_sync import PassageSync, open_passages
from neardup.pipeline.verifier import BEFORE_ALL
from neardup.records import BandedFingerprint, Fingerprint, Fingerprinted, Language, Story

from tests.support.builders import commit, ledger_in_memory
from tests.support.faults.redis_faults import RedisServer
from tests.support.languages import CODES, HINDI, TAMIL
from tests.support.sampling import count_examples

DETECTION = Detection()
VERSION = fingerprint_version.version()
EVERYTHING = 10**6


class Held(NamedTuple):
    """A text to compare, by its language and its fingerprint."""

    language: Language
    fingerprint: Fingerprint

    @property
    def banded(self) -> BandedFingerprint:
        return BandedFingerprint(self.language, self.fingerprint.simhash, self.fingerprint.signature)


def copy_of(words: Sequence[str], random: Random) -> list[str]:
    """Some words of a text in a row, and words of its own before and after them, of which some are replaced."""
    start, end = sorted(random.sample(range(len(words) + 1), 2))
    own = [f"own{random.random()}" for _ in range(random.choice((0, 5, 200)))]
    changed = [word if random.random() > 0.03 else f"new{random.random()}" for word in words[start:end]]
    return [*own, *changed, *own[::-1], "end"]


def corpus_of(seed: int, size: int) -> list[Held]:
    """Texts of two languages, of which most have text of an earlier one."""
    random = Random(seed)
    words = [[f"word{random.random()}" for _ in range(300)]]
    words += [copy_of(random.choice(words), random) for _ in range(size)]
    return [Held(random.choice((HINDI, HINDI, TAMIL)), Text(" ".join(some)).fingerprint) for some in words]


def in_memory(corpus: Sequence[Held], detection: Detection = DETECTION) -> set[Pair]:
    return set(nominate_pairs(corpus, detection).pairs)


corpora = st.builds(corpus_of, st.integers(0, 2**32), st.integers(0, 12))


@settings(deadline=None)
@given(corpora)
def test_texts_that_are_looked_up_in_memory_have_the_pairs_of_all_at_once(corpus: list[Held]) -> None:
    held, found = HeldTexts(DETECTION), set[Pair]()
    for place, text in enumerate(corpus):
        numbers, _ = held.nominate(text)
        found |= {(number - 1, place) for number in numbers}
        held.add(text)
    assert found == in_memory(corpus)


@settings(deadline=None, max_examples=count_examples(10))
@given(corpora, st.sampled_from([2, 4, 50]))
def test_lookups_and_an_audit_nominate_the_pairs_of_memory(
    tmp_path_factory: pytest.TempPathFactory, corpus: list[Held], common: int
) -> None:
    detection = replace(DETECTION, common_passage=common)
    asyncio.run(_nominates_alike(tmp_path_factory.mktemp("ledger"), corpus, detection))


async def _nominates_alike(folder: Path, corpus: Sequence[Held], detection: Detection) -> None:
    pairs = in_memory(corpus, detection)
    probes = [StoryProbe(place, text.banded, sample_passages(text)) for place, text in enumerate(corpus)]
    with closing(Ledger(folder / "neardup.db")) as ledger, closing(await open_passages(ledger)) as opened:
        made = [Fingerprinted(Story(n, text.language), text.fingerprint, None) for n, text in enumerate(corpus)]
        await ledger.do(lambda db: commit(db, *made))
        index, passages = SqliteIndex(ledger.path, detection.bandings(LANGUAGES)), PassageSync(opened, ledger)
        await admit_version(index, ledger, VERSION)
        await catch_up(index, ledger, VERSION)
        await passages.catch_up()
        nomination = PassageNomination(passages, ledger, detection)
        nominees = await nominate(index, nomination, ledger, detection, probes)
        assert nominees is not None
        matches, _ = nominees
        found = {
            tuple(sorted((story.story_id, other))) for story in matches for other in (*story.ids, *story.by_passages)
        }
        assert found == pairs, "stories that are looked up"
        nominator = TextNominator(index, passages, ledger, detection, VERSION)
        for probe in probes:
            facts = await ledger.do(read_facts)
            nominated = await nominator.nominate(probe, facts, None)
            of_one = {tuple(sorted((probe.story_id, other))) for some in nominated[:2] for other in some}
            own = {pair for pair in pairs if probe.story_id in pair}
            assert of_one == own, "one text"
            late = await ledger.do(find_unseen, probe, 0, detection)
            unseen = {tuple(sorted((probe.story_id, other))) for some in (late.ids, late.by_passages) for other in some}
            assert own <= unseen, "one text, among the stories that its lookups missed"
        wide = {probe.story_id: WideMatches() for probe in probes}
        stories: FingerprintArrays = await ledger.do(versions.read_existing_fingerprints, list(wide), ())
        await match_fingerprints(ledger, stories, detection, wide)
        hashes = {probe.story_id: probe.passages for probe in probes}
        await match_passages(ledger, opened, hashes, detection.common_passage, wide)
        assert pairs <= {tuple(sorted((story, other))) for story, some in wide.items() for other in some.ids()}, "audit"
        await index.close()


@pytest.mark.parametrize("layout", ["compact", "documented"])
async def test_a_stale_replica_hides_no_story_that_is_not_named(
    layout: Literal["compact", "documented"], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A check that reads a replica knows by its position what it lacks, and compares with that by itself."""
    [text] = corpus_of(1, 0)
    server = RedisServer(tmp_path / "redis")
    with closing(Ledger(tmp_path / "neardup.db")) as ledger, closing(await open_passages(ledger)) as opened:
        index = await open_redis(server.url, DETECTION.bandings(LANGUAGES), CODES, layout)
        await admit_version(index, ledger, VERSION)

        async def add(place: int) -> None:
            await ledger.do(lambda db: commit(db, Fingerprinted(Story(place, text.language), text.fingerprint, None)))
            await catch_up(index, ledger, VERSION)

        await add(0)
        server.start_lagging_replica()
        await add(1)
        await add(2)
        server.fail_over()
        checked = TextNominator(index, PassageSync(opened, ledger), ledger, DETECTION, VERSION)
        probe = StoryProbe(9, text.banded, sample_passages(text))
        found = await checked.nominate(probe, await ledger.do(read_facts), None)
        assert (found.whole, found.reasons) == ((0, 1, 2), ()), "the replica lacks stories that the ledger has"
        monkeypatch.setattr(versions, "MAX_UNINDEXED", 1)
        monkeypatch.setattr(lookup, "MAX_UNINDEXED", 1)
        found = await checked.nominate(probe, await ledger.do(read_facts), None)
        assert found.whole == (0, 2)
        why = "the index is behind the ledger: only the latest 1 stories were compared as whole texts"
        assert found.reasons == (why,)
        await index.close()
    server.stop()


@settings(deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 4))
def test_the_limit_of_matches_is_that_of_the_ledger(seed: int, most: int) -> None:
    corpus = [text for text in corpus_of(seed, 12) if text.language == HINDI]
    ranked = nominate_pairs(corpus, DETECTION).alike
    limited = nominate_pairs(corpus, replace(DETECTION, max_matches=most))
    with closing(ledger_in_memory()) as db:
        commit(db, *(Fingerprinted(Story(n, HINDI), text.fingerprint, None) for n, text in enumerate(corpus)))
        best = HeldTexts(replace(DETECTION, max_matches=most))
        for place, text in enumerate(corpus):
            matches = [number - 1 for number in best.find_alike(text)]
            with transaction(db):
                candidates.nominate(db, candidates.Matches(place, matches, most))
            best.add(text)
        recorded = {(pair.a.id, pair.b.id) for pair in candidates.list_pending(db, BEFORE_ALL, EVERYTHING)}
    assert recorded == limited.alike <= ranked
