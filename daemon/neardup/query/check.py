"""Check a text against the stories of a ledger, without storing anything."""

import asyncio
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from neardup.config import Detection
from neardup.core.candidates.select import nominate
from neardup.core.fingerprint.compute import fingerprint
from neardup.core.fingerprint.passage_hashes import PassageHashes
from neardup.core.page import PageText
from neardup.core.verify.scores import Shingled, assess, shingled
from neardup.core.verify.tiers import COPIED_WORDS, tier_of
from neardup.errors import Transient
from neardup.index.passages.index import PassageIndex
from neardup.index.protocol import Index
from neardup.ledger import Ledger, common_passages, fingerprint_arrays, runs, stories
from neardup.pages.text_cache import Text, Texts
from neardup.pipeline.common_passages import Probe
from neardup.pipeline.index_sync import ledger_id, refuse_index_mismatch
from neardup.pipeline.passage_nomination import PassageNomination
from neardup.pipeline.passage_sync import PassageSync
from neardup.records import BandedFingerprint, Candidate, Fingerprint, Kind, Language, PairedStory, Signals
from neardup.retry import retried
from neardup.timestamps import rfc3339

CHECKED_ID = -(2**63)  # the id of the checked text in a candidate; no story has it

Verified = tuple[int, Kind, Signals]  # the id of a matching story, the kind of the match and its signals


@dataclass(frozen=True, slots=True)
class Match:
    """A story that a text would be flagged against.

    `containment` is the share of the text's shingles that occur in the story, `matched_containment` the share of the
    story's shingles that occur in the text.  If the story's text could not be read, they and `jaccard` are `estimated`
    from the signatures, or None without signatures, and `copied_words` is None.  `published_at` is in milliseconds.
    """

    kind: Kind
    story_id: int
    hamming: int
    jaccard: float | None
    containment: float | None
    matched_containment: float | None
    longest_run_words: int | None
    copied_words: int | None
    estimated: bool
    title: str | None
    author_id: str | None
    published_at: int | None

    def as_dict(self) -> dict[str, Any]:
        """The match as JSON-serialisable values, its time in RFC 3339."""
        return asdict(self) | {"published_at": rfc3339(self.published_at)}


class Checker:
    """Checks texts against the stories of a ledger; long-lived, and safe for concurrent checks.

    `texts` reads the candidates; one with the text hash of the checked text needs no reading.
    """

    def __init__(  # noqa: PLR0917 - each is a part of its own
        self, index: Index, passages: PassageIndex, ledger: Ledger, texts: Texts, detection: Detection, version: str
    ) -> None:
        self._index = index
        self._passages = PassageSync(passages, ledger)
        self._nomination = PassageNomination(self._passages, ledger, detection)
        self._ledger = ledger
        self._texts = texts
        self._detection = detection
        self._version = version

    async def check(self, text: PageText, language: Language) -> list[Match]:
        """The matches of a text, as `core.page.split_file` or `split_story` returns it, the most severe first.

        Raises Fatal for the index of another ledger or of another version of the fingerprints, Transient for an index
        that is behind the ledger.
        """
        own, shingles = await asyncio.to_thread(_fingerprinted, text.words)
        ids = await retried(
            "look_up", lambda: self._candidate_ids(BandedFingerprint(language, own.simhash, own.signature))
        )
        ids |= await self._ids_by_passages(Probe(CHECKED_ID, language, np.frombuffer(own.passages, np.uint32)))
        rows = await self._ledger.do(stories.describe, ids)
        checked = PairedStory(CHECKED_ID, None, own.text_hash, own.simhash, own.signature, own.words, own.shingles)
        pairs = [
            Candidate(language, checked, PairedStory(**{name: row[name] for name in PairedStory.__slots__}))
            for row in rows.values()
        ]
        texts = await self._texts.read((language, pair.b) for pair in pairs if pair.b.text_hash != own.text_hash)
        common = await self._ledger.do(common_passages.of_language, language)
        verified = await asyncio.to_thread(self._verify, pairs, shingles, texts, common)
        return [_match(kind, signals, dict(rows[story_id])) for story_id, kind, signals in sorted(verified, key=_rank)]

    async def _ids_by_passages(self, probe: Probe) -> set[int]:
        await self._passages.catch_up()
        matches = await self._nomination.nominate(await self._nomination.look_up_probes([probe]))
        return set(matches[CHECKED_ID].ids)

    async def _candidate_ids(self, probe: BandedFingerprint) -> set[int]:
        languages = await self._ledger.do(runs.stories_by_language)
        refuse_index_mismatch(await self._index.position(), await ledger_id(self._ledger), self._version, languages)
        applied, [lookup] = await self._index.lookup([probe])
        state = None if applied is None else await self._ledger.do(fingerprint_arrays.for_nomination, [lookup], applied)
        if state is None:
            raise Transient("the index is behind the ledger: a run, or `neardup reindex`, brings it up to date")
        arrays, unindexed = state
        thresholds = {probe.language: self._detection.of(probe.language)}
        [nominee] = nominate([([CHECKED_ID], probe)], [lookup], arrays, thresholds, unindexed)
        return set(nominee.matches)

    def _verify(
        self, pairs: list[Candidate], shingles: Shingled, texts: dict[bytes, Text], common: PassageHashes
    ) -> list[Verified]:
        """Verify candidates, and return those that match."""
        verified = []
        for pair in pairs:
            text = texts.get(pair.b.text_hash)
            other = text if isinstance(text, Shingled) else None
            assessment = assess(pair, shingles, other, self._detection.of(pair.language), common)
            if assessment is not None and assessment.kind is not None:
                verified.append((pair.b.id, assessment.kind, assessment.signals))
        return verified


def _fingerprinted(words: list[bytes]) -> tuple[Fingerprint, Shingled]:
    return fingerprint(words), shingled(words)


def _rank(verified: Verified) -> tuple[int, float, int]:
    """The sort key, in the order of an export: the most severe kind first, and within a kind the strongest match."""
    story_id, kind, signals = verified
    tier = tier_of(kind)
    return tier.severity, -tier.strength(signals), story_id


def _match(kind: Kind, signals: Signals, row: dict[str, Any]) -> Match:
    return Match(
        kind=kind,
        story_id=row["id"],
        hamming=signals.hamming,
        jaccard=signals.jaccard,
        containment=signals.containment_a,
        matched_containment=signals.containment_b,
        longest_run_words=signals.longest_run_words,
        copied_words=None if signals.estimated else int(signals.extra[COPIED_WORDS]),
        estimated=signals.estimated,
        title=row["title"],
        author_id=row["author_id"],
        published_at=row["published_at"],
    )
