"""Projects the size of the passage index, and the reads of a day's lookups from a cold disk."""

import math
from dataclasses import dataclass

from neardup.index.passages.segment import BLOCK, OFFSET, bucket_bits, segment_bytes
from neardup.insights.plan.project import Corpus

READS_A_SECOND = 3000  # of 4 KiB at random places, by a gp3 volume as it comes


@dataclass(frozen=True, slots=True)
class PassageProjection:
    """The passage index of a corpus: its bytes on disk once it is merged, and its postings.

    `daily_reads` are the blocks that a day's lookups read if none is in the page cache, and `daily_seconds` the time
    that they take at READS_A_SECOND.
    """

    bytes: int
    postings: int
    daily_reads: float
    daily_seconds: float


def project_passages(corpus: Corpus, daily: int) -> PassageProjection:
    """Project the passage index of a corpus, and the lookups of `daily` new stories in it."""
    stories = sum(corpus.stories.values())
    postings = round(sum(n * corpus.profiles[language].passages for language, n in corpus.stories.items()))
    size = segment_bytes(postings, max(round(stories), 1))
    directory = (OFFSET.itemsize << bucket_bits(postings)) / BLOCK
    hashes = daily * postings / stories if stories else 0.0
    reads = _distinct(directory, hashes) + _distinct(size / BLOCK - directory, hashes)
    return PassageProjection(size, postings, reads, reads / READS_A_SECOND)


def _distinct(blocks: float, draws: float) -> float:
    """How many different blocks so many random draws hit."""
    return blocks * -math.expm1(-draws / blocks)
