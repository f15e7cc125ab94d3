"""Law: the flags are those of brute force, however stories are ordered and batched.

An index that lags, and lookups ahead of the writer, change no flag either.  Generated fingerprints go through the real
writer, verifier, ledger and index; the texts are missing, so signatures decide.
"""

import asyncio
import random
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from neardup.config import Detection
from neardup.core.columns import Outcomes
from neardup.core.fingerprint.minhash import ROWS
from neardup.core.languages import LANGUAGES
from neardup.core.verify.scores import ComparedPair, estimate
from neardup.core.verify.tiers import EXACT, find_kind
from neardup.index.protocol import Bandings, IndexPosition
from neardup.index.sqlite import SqliteIndex
from neardup.ledger import Ledger, flags, outbox, runs
from neardup.pipeline.index_sync import admit_version, catch_up
from neardup.pipeline.verifier import Verifier
from neardup.pipeline.writer import BatchLookup
from neardup.records import Candidate, Change, Fingerprint, Fingerprinted, Kind, Language, Outcome, PairedStory, Story
from prometheus_client import REGISTRY
from structlog.testing import capture_logs

from tests.support.builders import fingerprint_of
from tests.support.languages import HINDI, ODIA
from tests.support.passages import writer_of
from tests.support.sampling import count_examples

Pairs = set[tuple[int, int, str, int]]
Text = tuple[int, list[int], list[int] | None]

# Few seeds, few flipped bits and few changed rows make copies common.
bits = st.one_of(st.lists(st.integers(0, 127), max_size=5, unique=True), st.just(list(range(20))))
rows = st.one_of(st.none(), st.lists(st.integers(0, ROWS - 1), max_size=60, unique=True))
texts = st.tuples(st.integers(0, 1), bits, rows)
languages = st.sampled_from([HINDI, ODIA])
aheads = st.integers(0, 2)
listed = st.lists(st.tuples(languages, texts, st.integers(0, 5)), min_size=2, max_size=12)


class NoTexts:
    """An object store without any pages."""

    async def read_pairs(
        self, pairs: Sequence[Candidate], unanswered: frozenset[bytes]
    ) -> tuple[list[ComparedPair], frozenset[bytes]]:
        return [ComparedPair(pair, None, None) for pair in pairs], unanswered


class LaggingIndex(SqliteIndex):
    """An index that applies changes only when it gets the next ones, or is asked for its position."""

    def __init__(self, path: Path, bandings: Bandings) -> None:
        super().__init__(path, bandings)
        self._pending: Callable[[], Awaitable[None]] | None = None

    async def read_position(self) -> IndexPosition:
        await self._apply_pending()
        return await super().read_position()

    async def apply(self, changes: Sequence[Change], applied: int | None, since: int | None = None) -> None:
        await self._apply_pending()
        self._pending = partial(super().apply, changes, applied, since)

    async def _apply_pending(self) -> None:
        pending, self._pending = self._pending, None
        if pending:
            await pending()


def fingerprint(text: Text) -> Fingerprint:
    seed, flipped, changed = text
    value = int.from_bytes(random.Random(seed).randbytes(16))
    for bit in flipped:
        value ^= 1 << bit
    signature = bytearray(random.Random(-seed).randbytes(ROWS))
    for row in changed or ():
        signature[row] = (signature[row] + 1 + row) % 256
    return fingerprint_of(value.to_bytes(16), None if changed is None else bytes(signature))


def outcome(story_id: int, language: Language, text: Text, published: int) -> Fingerprinted:
    return Fingerprinted(Story(story_id, language, published_at=published or None), fingerprint(text), None)


async def flagged(
    folder: Path, batches: list[list[Outcome]], detection: Detection, kind: type[SqliteIndex], ahead: int
) -> Pairs:
    ledger, index = Ledger(folder / "l.db"), kind(folder / "l.db", detection.bandings(LANGUAGES))
    await admit_version(index, ledger, "v")
    await catch_up(index, ledger, "v")
    verifier = Verifier(ledger, detection, "v", NoTexts(), lambda new_flags, pairs: None)  # type: ignore[arg-type]
    run_id = await ledger.do(runs.begin, "backfill")
    async with await writer_of(ledger, index, detection, run_id=run_id, committed=verifier.wake) as writer:
        lookups: list[BatchLookup | None] = []
        for n, batch in enumerate(batches):
            lookups += [await writer.look_up(Outcomes.of(later)) for later in batches[len(lookups) : n + 1 + ahead]]
            await writer.write(Outcomes.of(batch), lookups[n], 0)
    await verifier.drain()
    found = await ledger.do(lambda db: list(flags.select(db)))
    assert await ledger.do(outbox.read_last_seq) == (await index.read_position()).applied, "the index lacks changes"
    await index.close()
    ledger.close()
    return {(row["story_id"], row["matched_id"], row["kind"], row["hamming"]) for row in found}


def run(
    batches: list[list[Outcome]], kind: type[SqliteIndex] = SqliteIndex, ahead: int = 0, **thresholds: Any
) -> Pairs:
    with tempfile.TemporaryDirectory() as folder:
        return asyncio.run(flagged(Path(folder), batches, Detection(**thresholds), kind, ahead))


def side(outcome: Fingerprinted) -> PairedStory:
    made = outcome.fingerprint
    return PairedStory(
        outcome.story.id,
        outcome.story.language,
        None,
        made.text_hash,
        made.simhash,
        made.signature,
        made.words,
        made.shingles,
    )


def kind_by_hand(x: Fingerprinted, y: Fingerprinted) -> tuple[Kind | None, int]:
    first, second = x.fingerprint, y.fingerprint
    differing = (int.from_bytes(first.simhash) ^ int.from_bytes(second.simhash)).bit_count()
    if first.text_hash == second.text_hash:
        return EXACT, differing
    signed = first.signature is not None and second.signature is not None
    same = [a == b for a, b in zip(first.signature or b"", second.signature or b"", strict=False)] if signed else []
    nominated = sum(map(all, zip(same[::2], same[1::2], strict=True))) >= 2 and sum(same) >= 10
    if differing > 3 and not nominated:
        return None, differing
    return find_kind(estimate(Candidate(side(x), side(y)), differing), Detection()), differing


def brute_force(outcomes: list[Fingerprinted]) -> Pairs:
    found = set()
    for x, y in combinations(outcomes, 2):
        if x.story.language != y.story.language:
            continue
        kind, differing = kind_by_hand(x, y)
        if kind is not None:
            early, late = sorted((x.story, y.story), key=lambda s: (s.published_at or float("inf"), s.id))
            found.add((late.id, early.id, kind, differing))
    return found


INDEXES = st.sampled_from([SqliteIndex, LaggingIndex])


@given(kind=INDEXES, rows=listed, data=st.data())
@settings(deadline=None, max_examples=count_examples(60))
def test_flags_are_those_of_brute_force_in_any_order_and_batches(
    kind: type[SqliteIndex], rows: list[tuple[Language, Text, int]], data: st.DataObject
) -> None:
    outcomes = [outcome(n, *row) for n, row in enumerate(rows)]
    shuffled = data.draw(st.permutations(outcomes))
    cuts = sorted(data.draw(st.sets(st.integers(1, len(rows) - 1))))
    batches: list[list[Outcome]] = [list(shuffled[a:b]) for a, b in zip([0, *cuts], [*cuts, len(rows)], strict=True)]
    assert run(batches, kind, data.draw(aheads)) == brute_force(outcomes)


@given(
    kind=st.sampled_from([SqliteIndex, LaggingIndex]), versions=st.lists(listed, min_size=2, max_size=4), ahead=aheads
)
@settings(deadline=None, max_examples=count_examples(40))
def test_after_edits_only_the_last_versions_count(
    kind: type[SqliteIndex], versions: list[list[tuple[Language, Text, int]]], ahead: int
) -> None:
    batches: list[list[Outcome]] = [[outcome(n, *row) for n, row in enumerate(rows)] for rows in versions]
    last = {n: outcome(n, *row) for rows in versions for n, row in enumerate(rows)}
    assert run(batches, kind, ahead) == brute_force(list(last.values()))


def test_a_template_copied_many_times_is_capped() -> None:
    same = [outcome(n, HINDI, (1, [], []), 1) for n in range(120)]
    found = run([list(same[:60]), list(same[60:])])
    assert {n for pair in found for n in pair[:2]} == set(range(120)), "a copy has no flag"
    assert found == {(n, other, EXACT, 0) for n in range(120) for other in range(min(n, 50))}, "the lowest ids win"


def count_large_buckets() -> float:
    return REGISTRY.get_sample_value("neardup_capped_buckets_total", {"language": "HINDI"}) or 0.0


def test_a_large_bucket_is_read_whole_and_reported() -> None:
    same = [outcome(n, HINDI, (1, [], []), 1) for n in range(40)]
    before = count_large_buckets()
    with capture_logs() as logs:
        found = run([list(same[:30]), list(same[30:31]), list(same[31:])], max_bucket=7)
    assert {pair[:2] for pair in found} == {(b, a) for b in range(40) for a in range(b)}, "a copy was not found"
    assert count_large_buckets() > before
    [line] = [entry for entry in logs if entry["event"] == "max_bucket reached"]
    assert (line["language"], line["times"]) == ("HINDI", count_large_buckets() - before), (
        "one line per language and run"
    )
    assert line["times"] >= 37, "five blocks of the SimHash, 32 bands of the signature"
    assert (line["fullest"].split(":")[0], line["members"] > 7) == ("HINDI", True)
