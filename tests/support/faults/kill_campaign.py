"""The campaign of kills: lives in which commands are killed and run again, beside one that nothing happened to.

python -m tests.support.faults.kill_campaign [KILLS]     so many for each index, and for the desk; tells a table
"""

import random
import sqlite3
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.faults.command_driver import At, Driver
from tests.support.faults.command_sequence import ACTS, Life
from tests.support.faults.consistency import INDEXES, State, state_of
from tests.support.faults.fault_table import Row
from tests.support.faults.killed_command import MESSAGE, STATEMENT
from tests.support.servers import redis_server

FRESH = {"backfill": ("backfill", "--fresh")}
BLOWS_A_LIFE = 26
SOON = {STATEMENT: 60, MESSAGE: 8}  # after a point that was reached
LATEST_SECONDS = 0.05  # likewise: about as long as a batch takes


@dataclass(slots=True)
class Undisturbed:
    """A life that nothing happened to: after each act its state, what it reached, what its exports had given."""

    states: dict[str, State] = field(default_factory=dict)
    reached: dict[str, dict[str, int]] = field(default_factory=dict)
    given: Counter[tuple[int, int]] = field(default_factory=Counter)


@dataclass(slots=True)
class Tally:
    """What a campaign came to; `wrong` has a line for whatever was not as if nothing had happened."""

    kills: int = 0
    points: Counter[str] = field(default_factory=Counter)
    in_flight: list[int] = field(default_factory=list)
    lost: int = 0
    flagged_twice: int = 0
    seconds: list[float] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)

    def row(self, fault: str) -> Row:
        """Its line of the table."""
        return Row(fault, self.kills, sum(self.in_flight), self.lost, self.flagged_twice, tuple(self.seconds))


def acts(*, fresh: bool) -> Iterator[tuple[str, tuple[str, ...]]]:
    for name, (_, arguments) in ACTS.items():
        yield name, FRESH.get(name, arguments) if fresh else arguments


def undisturbed(driver: Driver, folder: Path, index: str, url: str, *, fresh: bool) -> Undisturbed:
    life, out = Life(driver, folder, index, url), Undisturbed()
    for name, arguments in acts(fresh=fresh):
        ACTS[name][0](life)
        run = life.start(*arguments)
        assert run.wait() == 0, run.said()
        out.states[name], out.reached[name] = state_of(life.ledger), run.reached()
        assert (faults := life.faults(out.states[name])) == [], faults
        life.export()
    out.given = life.given
    return out


def instants(chance: random.Random, reached: dict[str, dict[str, int]]) -> list[tuple[str, At]]:
    """Acts and instants in them, shuffled: each step's both edges, a little later, a statement or a message later."""
    out: list[tuple[str, At]] = []
    for act, counts in reached.items():
        for point, n in counts.items():
            if point not in SOON:
                at = {"point": point, "nth": _one_of(chance, n)}
                out += [(act, at), (act, at | {"seconds": chance.uniform(0, LATEST_SECONDS)})]
                later = [other for other in SOON if other in counts]
                out += [(act, {"point": one, "nth": chance.randint(1, SOON[one]), "since": point}) for one in later]
    chance.shuffle(out)
    return out


def _one_of(chance: random.Random, n: int) -> int:
    """1 to n, the first ones more often: what is killed again has less before it than it had."""
    return 1 + int(n * chance.random() ** 2)


def campaign(driver: Driver, folder: Path, index: str, blows: int, *, url: str = "") -> Tally:
    """Strike so many times, in as many lives as that takes; each act is compared when it has ended by itself.

    A command that does not come to its instant, for what was done before, ends well and is not counted.
    """
    chance, tally = random.Random(index), Tally()
    calm: dict[bool, Undisturbed] = {}
    planned: dict[bool, list[tuple[str, At]]] = {False: [], True: []}
    for n, first in enumerate(range(0, blows, BLOWS_A_LIFE)):
        fresh = bool((n + INDEXES.index(index)) % 2)
        if fresh not in calm:
            calm[fresh] = undisturbed(driver, folder / f"undisturbed {fresh}", index, url, fresh=fresh)
        if not planned[fresh]:
            planned[fresh] = instants(chance, calm[fresh].reached)
        most = min(blows - first, BLOWS_A_LIFE)
        mine, planned[fresh] = planned[fresh][:most], planned[fresh][most:]
        _live(Life(driver, folder / f"life {n}", index, url), mine, calm[fresh], tally, fresh=fresh)
    return tally


def _live(life: Life, planned: list[tuple[str, At]], calm: Undisturbed, tally: Tally, *, fresh: bool) -> None:
    for act, arguments in acts(fresh=fresh):
        ACTS[act][0](life)
        before = tally.kills
        for at in [at for name, at in planned if name == act]:
            run = life.start(*arguments, at=at)
            code = run.wait()
            if code == -9:
                tally.kills += 1
                tally.points[f"{act}: {at['point']} since {at.get('since')}"] += 1
                tally.in_flight.append(_in_flight(life, calm.states[act]))
            elif code:
                tally.wrong.append(f"{life.index}, {act}, to be killed at {at}: ended with {code}: {run.said()}")
        began = time.monotonic()
        run = life.start(*arguments)
        if run.wait() != 0:
            tally.wrong.append(f"{life.index}, {act}, run again: {run.said()}")
        if tally.kills > before:
            tally.seconds.append(time.monotonic() - began)
        faults = life.faults(calm.states[act])
        tally.lost += sum(fault.startswith("stories: lacks") for fault in faults)
        tally.wrong += [f"{life.index}, {act}, killed at {[at for n, at in planned if n == act]}: {f}" for f in faults]
        life.export()
    twice = life.given - calm.given
    tally.flagged_twice += twice.total()
    tally.wrong += [f"{life.index}: {pair} was given {n} times more" for pair, n in twice.items()]
    tally.wrong += [f"{life.index}: {pair} was not given" for pair in calm.given - life.given]


def _in_flight(life: Life, after: State) -> int:
    """Stories that the act was to write and had not when it died."""
    try:
        held = set(state_of(life.ledger)["stories"])
    except sqlite3.OperationalError:  # killed before there was a ledger
        held = set()
    return len(set(after["stories"]) - held)


@contextmanager
def redis_for(index: str, folder: Path) -> Iterator[str]:
    """The URL of a Redis for an index that needs one."""
    with ExitStack() as stack:
        yield "" if index == "sqlite" else stack.enter_context(redis_server(folder))
