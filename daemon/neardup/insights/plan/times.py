"""The costs of a story, and the stage that limits a run.

The cost of fetching, reading and fingerprinting a page is measured by the sample on this machine.  The other costs are
the constants below, in microseconds of CPU a story.  They were measured on two shared x86-64 vCPUs that also ran Redis
7.0.
"""

from dataclasses import dataclass

MICRO = 1e6
HOUR, MINUTE = 3600, 60
STAGES = ("processors", "writer", "fetching pages")
USED = 0.9  # share of the cores that is used at best, because stages wait for each other


@dataclass(frozen=True, slots=True)
class PageCost:
    """The cost of a page.

    `fetch` is the CPU time to fetch it, `read` the CPU time to extract and fingerprint its text, `wall` the elapsed
    time a page with as many requests in flight as a run has, all in microseconds; `bytes` is its size.  The defaults
    are for 20 KB of HTML with 1,130 words, from a store on the same machine, with both cores busy.
    """

    fetch: float = 95.0
    read: float = 155.0
    wall: float = 180.0
    bytes: float = 20_000.0


@dataclass(frozen=True, slots=True)
class IndexCost:
    """The costs of an index in microseconds of CPU, including those of Redis.

    `lookup` is for a lookup without the numbers that it reads, `a_number` for each of these, `insert` for an insert,
    and `build` for a story of an index that is built from the ledger.
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
FLOW = 60.0  # to list a story and pass it between the processes
COMMIT = 25.0  # to commit a story and its candidates to the ledger
CANDIDATE = 6.0  # to read the row of a candidate from the ledger and compare its fingerprints


@dataclass(frozen=True, slots=True)
class Pace:
    """Stories a second, and the stage of STAGES that limits them."""

    rate: float
    limited_by: str


def pace(page: PageCost, writing: float, cores: int) -> Pace:
    """The rate of a run whose writer takes `writing` microseconds a story."""
    costs = ((page.fetch + page.read + FLOW + writing) / (USED * cores), writing, page.wall)
    rates = dict(zip(STAGES, (MICRO / max(cost, 1.0) for cost in costs), strict=True))
    slowest = min(rates, key=lambda name: rates[name])
    return Pace(rates[slowest], slowest)


def writer_cost(index: IndexCost, numbers: float, candidates: float) -> float:
    """The writer's cost of a story whose lookup reads `numbers` numbers and `candidates` candidates."""
    return COMMIT + index.lookup + index.a_number * numbers + CANDIDATE * candidates + index.insert
