"""A campaign that kills commands, runs them again, and compares the result with an undisturbed deployment."""

import random
import sqlite3
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from msgspec import Struct, field

from tests.support.faults.command_driver import COMMANDS, Deployment, Driver, StopPoint
from tests.support.faults.consistency import INDEXES, State, state_of
from tests.support.faults.fault_table import Row, Said, find_crashed, make_row
from tests.support.faults.killed_command import MESSAGE, START, STATEMENT
from tests.support.servers import redis_server

FRESH = {"backfill": ("backfill", "--fresh")}
KILLS_PER_DEPLOYMENT = 26
LATEST = {STATEMENT: 60, MESSAGE: 8}  # a kill comes at most so many statements or messages after a step
LATEST_SECONDS = 0.05  # or so many seconds after it: about the duration of a batch
START_SECONDS = 2.0  # or so many seconds after the start: the reader processes start meanwhile


class Reference(Struct):
    """An undisturbed deployment: its state and the points reached after each command, and the pairs it exported."""

    states: dict[str, State] = field(default_factory=dict)
    reached: dict[str, dict[str, int]] = field(default_factory=dict)
    exported: Counter[tuple[int, int]] = field(default_factory=Counter)


class Tally(Struct):
    """The results of a campaign; `wrong` has a line for each difference from the undisturbed deployment."""

    kills: int = 0
    points: Counter[str] = field(default_factory=Counter)
    in_flight: list[int] = field(default_factory=list)
    lost: int = 0
    said: int = 0  # the kills that the exit code and the run on record say
    flagged_twice: int = 0
    seconds: list[float] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)

    def row(self, scenario: str) -> Row:
        """The row of the fault table."""
        return make_row(
            scenario,
            self.kills,
            Said("exit code -9, run crashed", self.said),
            in_flight=sum(self.in_flight),
            lost=self.lost,
            flagged_twice=self.flagged_twice,
            seconds=tuple(self.seconds),
        )


def commands(*, fresh: bool) -> Iterator[tuple[str, tuple[str, ...]]]:
    for name, (_, arguments) in COMMANDS.items():
        yield name, FRESH.get(name, arguments) if fresh else arguments


def run_undisturbed(driver: Driver, folder: Path, index: str, url: str, *, fresh: bool) -> Reference:
    deployment, reference = Deployment(driver, folder, index, url), Reference()
    for name, arguments in commands(fresh=fresh):
        COMMANDS[name][0](deployment)
        run = deployment.start(*arguments)
        assert run.wait() == 0, run.stderr()
        reference.states[name], reference.reached[name] = state_of(deployment.ledger), run.reached_points()
        assert (faults := deployment.faults(reference.states[name])) == [], faults
        deployment.export()
    reference.exported = deployment.exported
    return reference


def kill_points(rng: random.Random, reached: dict[str, dict[str, int]]) -> list[tuple[str, StopPoint]]:
    """Commands with points at which to kill them, shuffled.

    The points are the start and the end of each step, some time after these, and some statements or messages after;
    and some time after the start of the command.
    """
    points: list[tuple[str, StopPoint]] = []
    for command, counts in reached.items():
        started = {"point": START, "nth": 1}
        points += [(command, started | {"seconds": rng.uniform(0, START_SECONDS)}) for _ in range(2)]
        for point, n in counts.items():
            if point not in LATEST:
                at = {"point": point, "nth": _one_of(rng, n)}
                points += [(command, at), (command, at | {"seconds": rng.uniform(0, LATEST_SECONDS)})]
                counted = [other for other in LATEST if other in counts]
                points += [
                    (command, {"point": place, "nth": rng.randint(1, LATEST[place]), "since": point})
                    for place in counted
                ]
    rng.shuffle(points)
    return points


def _one_of(rng: random.Random, n: int) -> int:
    """A number from 1 to n, low ones more often: a command that runs again has less left to do."""
    return 1 + int(n * rng.random() ** 2)


def campaign(driver: Driver, folder: Path, index: str, kills: int, *, url: str = "") -> Tally:
    """Plan so many kills, over as many deployments as needed, and compare the state after each completed command.

    A command that does not reach its point, because an earlier attempt did that work, succeeds and is not counted.
    """
    rng, tally = random.Random(index), Tally()
    references: dict[bool, Reference] = {}
    planned: dict[bool, list[tuple[str, StopPoint]]] = {False: [], True: []}
    for n, first in enumerate(range(0, kills, KILLS_PER_DEPLOYMENT)):
        fresh = bool((n + INDEXES.index(index)) % 2)
        if fresh not in references:
            references[fresh] = run_undisturbed(driver, folder / f"undisturbed {fresh}", index, url, fresh=fresh)
        if not planned[fresh]:
            planned[fresh] = kill_points(rng, references[fresh].reached)
        most = min(kills - first, KILLS_PER_DEPLOYMENT)
        chosen, planned[fresh] = planned[fresh][:most], planned[fresh][most:]
        _disturb(
            Deployment(driver, folder / f"deployment {n}", index, url), chosen, references[fresh], tally, fresh=fresh
        )
    return tally


def _disturb(
    deployment: Deployment, planned: list[tuple[str, StopPoint]], reference: Reference, tally: Tally, *, fresh: bool
) -> None:
    """Run all commands, killing each at its planned points first, and add the results to the tally."""
    for command, arguments in commands(fresh=fresh):
        COMMANDS[command][0](deployment)
        before = tally.kills
        for at in [at for name, at in planned if name == command]:
            run = deployment.start(*arguments, at=at)
            code = run.wait()
            if code == -9:
                tally.kills += 1
                tally.points[f"{command}: {at['point']} since {at.get('since')}"] += 1
                tally.in_flight.append(_in_flight(deployment, reference.states[command]))
            elif code:
                tally.wrong.append(
                    f"{deployment.index}, {command}, to be killed at {at}, ended with {code}: {run.stderr()}"
                )
        began = time.monotonic()
        run = deployment.start(*arguments)
        if run.wait() != 0:
            tally.wrong.append(f"{deployment.index}, {command}, run again: {run.stderr()}")
        if tally.kills > before:
            tally.seconds.append(time.monotonic() - began)
        tally.said += find_crashed(deployment.ledger, tally.kills - before).faults
        faults = deployment.faults(reference.states[command])
        tally.lost += sum(fault.startswith("stories: lacks") for fault in faults)
        tally.wrong += [
            f"{deployment.index}, {command}, killed at {[at for n, at in planned if n == command]}: {f}" for f in faults
        ]
        deployment.export()
    twice = deployment.exported - reference.exported
    tally.flagged_twice += twice.total()
    tally.wrong += [f"{deployment.index}: {pair} was exported {n} times too often" for pair, n in twice.items()]
    tally.wrong += [f"{deployment.index}: {pair} was not exported" for pair in reference.exported - deployment.exported]


def _in_flight(deployment: Deployment, after: State) -> int:
    """The number of stories that the killed command had yet to write."""
    try:
        held = set(state_of(deployment.ledger)["stories"])
    except sqlite3.OperationalError:  # killed before the ledger existed
        held = set()
    return len(set(after["stories"]) - held)


@contextmanager
def redis_for(index: str, folder: Path) -> Iterator[str]:
    """The URL of a new Redis if the index needs one, else an empty string."""
    with ExitStack() as stack:
        yield "" if index == "sqlite" else stack.enter_context(redis_server(folder))
