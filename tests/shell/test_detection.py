"""Word order, batch splits and arrival order change no flag; what is flagged is what brute force flags.

Stories go through the real writer, verifier, ledger and index, as fingerprints made for the purpose.
"""

import asyncio
import random
import tempfile
from itertools import combinations
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from daemon.config import Detection
from daemon.index.sqlite import SqliteIndex
from daemon.ledger import Ledger, flags, runs, stories
from daemon.records import Fingerprint, Fingerprinted, Language, Outcome, Story
from daemon.summary import Counts
from daemon.sync import catch_up, refuse_strangers
from daemon.verifier import Verifier
from daemon.writer import Writer

DISTANCES = dict.fromkeys(Language, 3)
Pairs = set[tuple[int, int, str, int]]

# Few seeds and few flipped bits, so that copies are common.
texts = st.tuples(st.integers(0, 2), st.lists(st.integers(0, 127), max_size=5, unique=True))
languages = st.sampled_from([Language.HINDI, Language.ODIA])
listed = st.lists(st.tuples(languages, texts, st.integers(0, 5)), min_size=2, max_size=12)


def fingerprint(text: tuple[int, list[int]]) -> Fingerprint:
    seed, bits = text
    value = int.from_bytes(random.Random(seed).randbytes(16))
    for bit in bits:
        value ^= 1 << bit
    return Fingerprint(value.to_bytes(16), value.to_bytes(16), 100)


def outcome(story_id: int, language: Language, text: tuple[int, list[int]], published: int) -> Fingerprinted:
    return Fingerprinted(Story(story_id, language, published_at=published or None), fingerprint(text), None)


async def flagged(folder: Path, batches: list[list[Outcome]]) -> Pairs:
    ledger, index = Ledger(folder / "l.db"), SqliteIndex(folder / "l.db", DISTANCES)
    detection = Detection()
    await refuse_strangers(index, ledger, "v")
    await catch_up(index, ledger, "v")
    verifier = Verifier(ledger, detection, "v", lambda news: None)
    run_id = await ledger.do(runs.begin, "backfill")
    writer = Writer(
        ledger,
        index,
        detection,
        "v",
        run_id=run_id,
        counts=Counts(),
        checkpoint=lambda position: None,
        committed=verifier.wake,
    )
    for batch in batches:
        await writer.write(batch, 0)
    await verifier.drain()
    rows = await ledger.do(lambda db: list(flags.open_pairs(db)))
    assert await ledger.do(stories.last_seq) == (await index.mark()).applied, "the index is in step"
    await index.close()
    ledger.close()
    return {(row["story_id"], row["matched_id"], row["kind"], row["hamming"]) for row in rows}


def run(batches: list[list[Outcome]]) -> Pairs:
    with tempfile.TemporaryDirectory() as folder:
        return asyncio.run(flagged(Path(folder), batches))


def brute_force(outcomes: list[Fingerprinted]) -> Pairs:
    found = set()
    for x, y in combinations(outcomes, 2):
        bits = (int.from_bytes(x.fingerprint.simhash) ^ int.from_bytes(y.fingerprint.simhash)).bit_count()
        if x.story.language == y.story.language and bits <= 3:
            early, late = sorted((x.story, y.story), key=lambda s: (s.published_at or float("inf"), s.id))
            kind = "exact" if x.fingerprint.text_hash == y.fingerprint.text_hash else "near"
            found.add((late.id, early.id, kind, bits))
    return found


@given(rows=listed, data=st.data())
@settings(deadline=None, max_examples=40)
def test_any_order_and_any_batches_flag_what_brute_force_flags(
    rows: list[tuple[Language, tuple[int, list[int]], int]], data: st.DataObject
) -> None:
    outcomes = [outcome(n, *row) for n, row in enumerate(rows)]
    shuffled = data.draw(st.permutations(outcomes))
    cuts = sorted(data.draw(st.sets(st.integers(1, len(rows) - 1))))
    batches: list[list[Outcome]] = [list(shuffled[a:b]) for a, b in zip([0, *cuts], [*cuts, len(rows)], strict=True)]
    assert run(batches) == brute_force(outcomes)


@given(first=listed, second=listed)
@settings(deadline=None, max_examples=30)
def test_after_edits_only_the_last_versions_count(
    first: list[tuple[Language, tuple[int, list[int]], int]], second: list[tuple[Language, tuple[int, list[int]], int]]
) -> None:
    before = [outcome(n, *row) for n, row in enumerate(first)]
    after = [outcome(n, *row) for n, row in enumerate(second)]
    last = {o.story.id: o for o in [*before, *after]}
    assert run([list(before), list(after)]) == brute_force(list(last.values()))


def test_a_template_copied_many_times_is_capped_and_said() -> None:
    same = [outcome(n, Language.HINDI, (1, []), 1) for n in range(120)]
    found = run([list(same[:60]), list(same[60:])])
    matches = {n: sum(n in pair[:2] for pair in found) for n in range(120)}
    assert min(matches.values()) >= 50, "each story keeps its max_matches"
    assert len(found) < 120 * 119 / 2, "and not all pairs are kept"
