"""Synthetic stories as rows of a ledger, and the number of stories of each language on the platform."""

import sqlite3
from collections.abc import Sequence

import click
import numpy as np
from neardup.core.columns import Outcomes
from neardup.core.fingerprint.minhash import ROWS
from neardup.core.languages import LANGUAGES
from neardup.index.redis.client import cut_batches
from neardup.ledger import outbox, stories
from neardup.records import BandedFingerprint, Fingerprint, Fingerprinted, Outcome, Story

from tests.support.languages import BENGALI, ENGLISH, GUJARATI, HINDI, MALAYALAM, MARATHI, ODIA, PUNJABI, TAMIL, TELUGU
from tests.support.resource_meter import cpu_seconds
from tests.support.synthetic import HASH_BYTES

FILL_BATCH = 10_000
FIRST_ID, ID_STEP = 6_755_373_518_000_000, 997
AUTHORS = 1_000_003
FIRST_TIME, PERIOD = 1_600_000_000_000, 10**11
WORDS = [
    "डाकघर",
    "की",
    "पुरानी",
    "दराज़",
    "सात",
    "नंबर",
    "की",
    "सीट",
    "मेरी",
    "अधूरी",
    "प्रेम",
    "कहानी",
    "एक",
    "रात",
    "का",
    "राज़",
    "वो",
    "लड़की",
]
MICRO = 1e6
PLATFORM = {
    HINDI: 4_170_000,
    MALAYALAM: 2_060_000,
    BENGALI: 1_850_000,
    MARATHI: 1_850_000,
    TAMIL: 1_820_000,
    TELUGU: 1_540_000,
    GUJARATI: 1_120_000,
    ENGLISH: 710_000,
    ODIA: 410_000,
    PUNJABI: 270_000,
}


def random_stories(ids: Sequence[int], seed: int) -> list[Fingerprinted]:
    """Synthetic stories with these ids, of random languages and with random fingerprints."""
    rng = np.random.default_rng(seed)
    hashes = rng.integers(0, 256, (len(ids), HASH_BYTES + ROWS), np.uint8)
    languages = rng.integers(0, len(LANGUAGES), len(ids)).tolist()
    fingerprints = [
        BandedFingerprint(LANGUAGES[language], row[:HASH_BYTES].tobytes(), row[HASH_BYTES:].tobytes())
        for language, row in zip(languages, hashes, strict=True)
    ]
    return stories_of(rng, ids, fingerprints)


def stories_of(
    rng: np.random.Generator, ids: Sequence[int], fingerprints: Sequence[BandedFingerprint]
) -> list[Fingerprinted]:
    """Synthetic stories with these ids and fingerprints; author, title and times are random."""
    hashes = rng.integers(0, 256, (len(ids), 2 * HASH_BYTES), np.uint8)
    words = iter(rng.integers(0, len(WORDS), (len(ids), 6)).tolist())
    lengths = rng.integers(2, 7, len(ids)).tolist()
    times = (rng.integers(0, PERIOD, len(ids)) + FIRST_TIME).tolist()
    return [
        Fingerprinted(
            Story(
                story_id,
                banded.language,
                author_id=str(FIRST_ID + story_id % AUTHORS),
                title=" ".join([WORDS[word] for word in next(words)[:length]]),
                published_at=time,
                updated_at=time,
            ),
            Fingerprint(row[:HASH_BYTES].tobytes(), banded.simhash, banded.signature, 1130, 1050),
            f'"{row[HASH_BYTES:].tobytes().hex()}"',
        )
        for story_id, banded, length, time, row in zip(ids, fingerprints, lengths, times, hashes, strict=True)
    ]


def commit(db: sqlite3.Connection, outcomes: Sequence[Outcome]) -> None:
    """Commit a batch in which no pair is nominated."""
    stories.commit(db, stories.Batch(Outcomes.of(outcomes), (), 1, {}, None))


def fill(db: sqlite3.Connection, ids: Sequence[int]) -> None:
    """Commit random stories with these ids, and print the CPU time of the commits."""
    cpu = 0.0
    for seed, batch in enumerate(cut_batches(ids, FILL_BATCH)):
        outcomes = random_stories(batch, seed)
        cpu -= cpu_seconds()
        commit(db, outcomes)
        cpu += cpu_seconds()
    outbox.prune_changes(db, 0)
    click.echo(f"filled in batches of {FILL_BATCH:,}: {cpu / len(ids) * MICRO:.1f} us of CPU per story")
