"""The verification stage: reads the texts of pending candidates, scores the pairs and records flags.

Candidates are committed with their stories, so after a crash they are still pending; verifying a pair twice gives the
same flag.  A pair of which a text is gone is scored by the signatures.  If the store does not answer for a text, its
pairs stay pending until the last pass of the run, or until the next run.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property

from msgspec import Struct, field

from neardup.config import Detection
from neardup.core.candidates.select import is_worth_comparing
from neardup.core.fingerprint.word_hashes import PassageHashes
from neardup.core.verify.scores import ComparedPair, assess_all, share_passages
from neardup.ledger import Ledger, candidates, passages, serials, verification
from neardup.nomination.passages import CommonHashes
from neardup.pages.text_cache import Texts
from neardup.records import Assessment, BandedFingerprint, Candidate, Kind, Language
from neardup.telemetry.metrics import ESTIMATED, FLAGS, NEAR_MISSES, STAGE_SECONDS

BATCH = 250  # pairs
HASH_BYTES = 8  # of a word or a shingle
WORD_BYTES = 16  # of a word in UTF-8, on average
MAX_TEXT_BYTES = 64_000_000  # of the texts that are held at the same time
BEFORE_ALL = (-(2**63), 0)  # the ids of a pair that sorts before every candidate

NewFlags = Counter[tuple[Language, Kind]]


class Verifier(Struct, dict=True):
    """Verifies the pending candidates each time it is woken, until `finish`.

    After each batch it calls `report` with the new flags and the number of pairs that it has gone through.  The words
    of common passages do not count as copied.
    """

    ledger: Ledger
    detection: Detection
    version: str
    texts: Texts
    report: Callable[[NewFlags, int], None]
    awake: asyncio.Event = field(default_factory=asyncio.Event)
    finishing: bool = False
    unanswered: frozenset[bytes] = frozenset()  # hashes of the texts for which the store did not answer

    @cached_property
    def common(self) -> CommonHashes:
        return CommonHashes(self.ledger)

    def wake(self) -> None:
        """Start a pass: there may be pending candidates."""
        self.awake.set()

    def finish(self) -> None:
        """End after a last pass: no more candidates will be committed."""
        self.finishing = True
        self.awake.set()

    async def run(self) -> None:
        """Make a pass each time it is woken, and a last one after `finish`.

        A pass goes through the pairs in the order of their ids, so it misses candidates that are committed meanwhile
        with lower ids than it has reached; the next pass verifies them.
        """
        last = False
        while not last:
            await self.awake.wait()
            self.awake.clear()
            last = self.finishing
            if last:
                self.unanswered = frozenset()
            await self.drain()

    async def drain(self) -> None:
        """Make one pass: verify every pending candidate once."""
        after = BEFORE_ALL
        while pending := await self.ledger.do(candidates.list_pending, after, BATCH):
            pending = take_fitting(pending)
            after = pending[-1].a.id, pending[-1].b.id
            await self.verify(pending)

    async def match_serials(self) -> None:
        """Align the serials whose chapters were flagged or near misses, until no pair is to be verified once more."""
        while await self.ledger.do(serials.refresh):
            await self.drain()

    async def verify(self, pending: Sequence[Candidate]) -> None:
        """Verify these candidates; their texts are held at the same time."""
        with STAGE_SECONDS.labels("verify").time():
            compared = await self._read_texts(pending)
            # only now: `_assess` leaves out what became common while the texts were read
            revision = await self.ledger.do(passages.read_common_revision)
            assessed = await self._assess(compared)
            new_flags = await self.ledger.do(verification.record, assessed, self.version, revision)
        count_assessed(assessed, new_flags)
        self.report(new_flags, len(pending))

    async def _read_texts(self, pairs: Sequence[Candidate]) -> list[ComparedPair]:
        """The pairs with their texts, except those with a text for which the store did not answer."""
        compared, self.unanswered = await self.texts.read_pairs(pairs, self.unanswered)
        return [
            both
            for both in compared
            for a, b in [(both.pair.a.text_hash, both.pair.b.text_hash)]
            if a == b or not self.unanswered & {a, b}
        ]

    async def _assess(self, compared: Sequence[ComparedPair]) -> list[tuple[Candidate, Assessment | None]]:
        common = {language: await self.common.of(language) for language in {both.pair.language for both in compared}}
        assessed = await asyncio.to_thread(assess_nominated, compared, self.detection, common)
        return [(pair, assessment) for (pair, *_), assessment in zip(compared, assessed, strict=True)]


def assess_nominated(
    compared: Sequence[ComparedPair], detection: Detection, common: Mapping[Language, PassageHashes]
) -> list[Assessment | None]:
    """As `assess_all`; None as well for a pair that nothing nominates, now that other passages are common."""
    assessed = assess_all(compared, detection.of, common.__getitem__)
    return [
        assessment if assessment and _is_nominated(both, detection, common[both.pair.language]) else None
        for both, assessment in zip(compared, assessed, strict=True)
    ]


def _is_nominated(both: ComparedPair, detection: Detection, common: PassageHashes) -> bool:
    """Whether passages or whole texts nominate two stories; if a text is gone, it is not known, and they stay so."""
    pair, a, b = both
    if a is None or b is None or share_passages(a, b, common):
        return True
    left, right = (BandedFingerprint(side.language, side.simhash, side.signature) for side in (pair.a, pair.b))
    return left.language == right.language and is_worth_comparing(left, right, detection.of(left.language))


def take_fitting(pairs: list[Candidate]) -> list[Candidate]:
    """The first pairs, as many as can be verified with MAX_TEXT_BYTES of texts; at least one."""
    size, text_hashes = 0, set[bytes]()
    for n, pair in enumerate(pairs):
        for side in (pair.a, pair.b):
            if pair.a.text_hash != pair.b.text_hash and side.text_hash not in text_hashes:
                text_hashes.add(side.text_hash)
                size += (HASH_BYTES + WORD_BYTES) * side.words + HASH_BYTES * side.shingles
        if n and size > MAX_TEXT_BYTES:
            return pairs[:n]
    return pairs


def count_assessed(assessed: Sequence[tuple[Candidate, Assessment | None]], new_flags: NewFlags) -> None:
    """Count near misses, pairs that signatures decided, and new flags, in the metrics."""
    for pair, assessment in assessed:
        if assessment is not None and assessment.kind is None:
            NEAR_MISSES.labels(pair.language).inc()
        if assessment is not None and assessment.signals.estimated:
            ESTIMATED.labels(pair.language).inc()
    for (language, kind), n in new_flags.items():
        FLAGS.labels(language, kind).inc(n)
