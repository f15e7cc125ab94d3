"""What a story costs, and which of a run's stages limits it.

Of a page's fetching, reading and fingerprinting the sample tells, on this machine; the rest are the constants
below: microseconds of CPU a story, on two shared x86-64 vCPUs with Redis 7.0 and SQLite on them.
"""

from dataclasses import dataclass

MICRO = 1e6
HOUR, MINUTE = 3600, 60
STAGES = ("processors", "writer", "fetching pages")
USED = 0.9  # of the cores, at best: the stages wait for each other


@dataclass(frozen=True, slots=True)
class PageCost:
    """Microseconds of CPU to fetch a page, and to read and fingerprint it; of `wall` clock for both, with as many
    requests in flight as a run has; the page's `bytes`.

    The defaults are of 20 KB of HTML, 1,130 words, from a store on the same machine, both cores busy.
    """

    fetch: float = 95.0
    read: float = 155.0
    wall: float = 180.0
    bytes: float = 20_000.0


@dataclass(frozen=True, slots=True)
class IndexCost:
    """Of a lookup without the numbers it reads, of each of these, of an insert; of a story in an index that is
    built from the ledger when all are in.  Redis's share is in them.
    """

    lookup: float
    a_number: float
    insert: float
    build: float


# Batches of 256 stories as uneven as prose, at 1 to 15.8 million stories of all languages.
INDEX = {
    "documented": IndexCost(lookup=300.0, a_number=0.012, insert=190.0, build=15.0),
    "compact": IndexCost(lookup=95.0, a_number=0.012, insert=170.0, build=6.0),
    "sqlite": IndexCost(lookup=110.0, a_number=0.012, insert=650.0, build=5.0),
}
FLOW = 60.0  # listed, asked for, handed from process to process
COMMIT = 25.0  # of a story and its candidates, in the ledger
CANDIDATE = 6.0  # its row read from the ledger, its hashes compared


@dataclass(frozen=True, slots=True)
class Pace:
    """Stories a second, and the stage of STAGES that limits them."""

    rate: float
    limited_by: str


def pace(page: PageCost, writing: float, cores: int) -> Pace:
    """Of stories that cost the writer so many microseconds each."""
    each = ((page.fetch + page.read + FLOW + writing) / (USED * cores), writing, page.wall)
    rates = dict(zip(STAGES, (MICRO / max(took, 1.0) for took in each), strict=True))
    slowest = min(rates, key=lambda name: rates[name])
    return Pace(rates[slowest], slowest)


def looking_up(index: IndexCost, numbers: float, candidates: float) -> float:
    """What a story costs the writer that is looked up, reads so many numbers and candidates, and is inserted."""
    return COMMIT + index.lookup + index.a_number * numbers + CANDIDATE * candidates + index.insert
