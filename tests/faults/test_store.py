"""Object store faults: listed = fingerprinted + skipped + dead-lettered, or the run ends with one error line; once the
store has recovered, `daily` and `retry` lead to the undisturbed state.
"""

import json
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, event, example, given, settings
from hypothesis import strategies as st
from msgspec import Struct
from neardup.config import Content
from neardup.errors import Fatal
from neardup.ledger.dead_letters import DeadLetterFilter
from neardup.records import Dead, DeadLettered, Fingerprinted, Outcome, Skip, Skipped, Story
from neardup.retry import ATTEMPTS
from prometheus_client import REGISTRY
from structlog.testing import capture_logs

from tests.support.builders import worker_of
from tests.support.command import Ended, Neardup
from tests.support.faults.bed import BUCKET, PATHS, Bed, State, configuration, impatient, served_samples
from tests.support.faults.fault_proxy import Fault, Proxy, explain_faults
from tests.support.faults.fault_table import AssertSameState, find_said
from tests.support.languages import HINDI
from tests.support.sampling import CHAOS

Make = Callable[..., Neardup]
LIES = [Fault.ERROR_DOCUMENT, Fault.SHORT, Fault.UNASKED, Fault.WRONG_ETAG]
SLOW = [Fault.SILENT, Fault.STUCK]
TRANSIENT = [Fault.INTERNAL, Fault.SLOW_DOWN, Fault.TRUNCATED, Fault.RESET, Fault.RESET_INSIDE, *LIES, *SLOW]
PAGE_FAULTS = [*TRANSIENT, Fault.DENIED, Fault.NOT_FOUND, Fault.NONE]
STORIES = len(PATHS)
SAMPLE = Story(4100000, HINDI)
SAMPLE_PATH = f"/{BUCKET}/HINDI/4100000.html"


@pytest.fixture(scope="module")
def proxy() -> Iterator[Proxy]:
    with served_samples() as proxy, impatient():
        yield proxy


@pytest.fixture(scope="module")
def undisturbed(proxy: Proxy, tmp_path_factory: pytest.TempPathFactory) -> State:
    """The state after a run without faults."""
    bed = Bed(tmp_path_factory.mktemp("undisturbed"))
    bed.configure(configuration(proxy.endpoint))
    proxy.plan({})
    summary = bed.run("backfill")
    assert summary.counts.fingerprinted == STORIES
    return bed.state()


def no_two_missing(faults: list[Fault]) -> bool:
    """Exclude a page that is missing twice in a row: neardup would take it to be deleted."""
    return all({first, second} != {Fault.NOT_FOUND} for first, second in pairwise(faults))


page_faults = st.lists(st.sampled_from(PAGE_FAULTS), max_size=2 * ATTEMPTS).filter(no_two_missing)
mixtures = st.dictionaries(st.sampled_from(PATHS), page_faults, max_size=20)
store_faults = st.sampled_from([{}, {}, {PATHS[40]: [Fault.EXPIRED]}, {PATHS[20]: [Fault.NO_BUCKET]}])


class Trouble(Struct, frozen=True):
    """A command, the faults of its requests for pages, and faults of the whole store."""

    command: str
    pages: dict[str, list[Fault]]
    all: dict[str, list[Fault]]
    breaker_share: float


BRIEFLY_MISSING = {path: [Fault.NONE, Fault.NOT_FOUND] for path in PATHS}  # while pairs are verified
troubles = st.builds(
    Trouble, st.sampled_from(["backfill", "daily"]), mixtures, store_faults, st.sampled_from([0.05, 1.0, 1.0])
)


@settings(deadline=None, max_examples=5 * CHAOS, suppress_health_check=list(HealthCheck))
@given(troubles)
@example(Trouble("backfill", BRIEFLY_MISSING, {}, 1.0))
def test_no_mixture_of_faults_loses_a_story(
    proxy: Proxy, undisturbed: State, assert_same_state: AssertSameState, trouble: Trouble
) -> None:
    before = len(proxy.injected)
    with TemporaryDirectory() as folder:
        bed = Bed(Path(folder))
        limits = f"\n[run]\nbreaker_share = {trouble.breaker_share}\nbreaker_after = 20\nworkers = 8\n"
        bed.configure(configuration(proxy.endpoint) + limits)
        proxy.plan(trouble.pages | trouble.all)
        counts, stop = None, None
        try:
            with capture_logs() as lines:
                counts = bed.run(trouble.command).counts
        except Fatal as error:
            stop = error
        event(f"ended by {type(stop).__name__}")
        if counts is not None:
            assert counts.listed == STORIES
            missing = Counter({"missing": counts.skipped["missing"]})
            assert dead_letters(bed.ledger) == counts.dead_lettered + missing, "some dead letters were not recorded"
        assert "\n" not in str(stop)
        proxy.plan({})
        injected, missing_pages = proxy.injected[before:], list_missing(bed.ledger)
        explained = explain_faults(injected, lines, missing_pages, failed=stop is not None)
        if stop is not None:
            bed.run(trouble.command)
        bed.run("daily")
        retried = bed.run("retry", dead_letters=DeadLetterFilter()).counts
        assert not retried.dead_lettered, "a retry failed without a fault"
        assert dead_letters(bed.ledger) == Counter(), "some dead letters remain"
        assert bed.state() == undisturbed
        for fault, n, said in explained:
            assert_same_state(f"store: {fault}", n, n, bed.state(), undisturbed, said=said)


def dead_letters(ledger: Path) -> Counter[str]:
    with closing(sqlite3.connect(ledger)) as db:
        return Counter(dict(db.execute("SELECT reason, count(*) FROM dead_letters GROUP BY reason")))


def list_missing(ledger: Path) -> set[str]:
    """The paths of the pages of which a dead letter says that they are missing."""
    with closing(sqlite3.connect(ledger)) as db:
        keys = " ".join(key for (key,) in db.execute("SELECT key FROM dead_letters WHERE reason = 'missing'"))
    return {path for path in PATHS if Path(path).stem in keys}


def retries(reason: str) -> float:
    return REGISTRY.get_sample_value("neardup_retries_total", {"stage": "fetch", "reason": reason}) or 0.0


async def outcome(proxy: Proxy, *faults: Fault) -> Outcome:
    proxy.plan({SAMPLE_PATH: faults})
    content = Content(url=f"s3://{BUCKET}", endpoint=proxy.endpoint, region="us-east-1", path_style=True)
    return await worker_of(content).outcome(SAMPLE)


REASONS = {Fault.SLOW_DOWN: "slow_down", Fault.SILENT: "timeout", Fault.STUCK: "timeout"}


@pytest.mark.parametrize("fault", TRANSIENT)
async def test_a_transient_fault_is_retried_and_counted(proxy: Proxy, fault: Fault) -> None:
    reason = REASONS.get(fault, "store_error")
    before, plain = retries(reason), await outcome(proxy)
    result = await outcome(proxy, *[fault] * (ATTEMPTS - 1))
    assert isinstance(result, Fingerprinted) and result == plain
    assert retries(reason) == before + ATTEMPTS - 1


@pytest.mark.parametrize("fault", TRANSIENT)
async def test_a_persistent_fault_makes_a_dead_letter(proxy: Proxy, fault: Fault) -> None:
    result = await outcome(proxy, *[fault] * ATTEMPTS)
    assert isinstance(result, DeadLettered) and result.reason is Dead.STORE_ERROR
    assert result.error and "<?xml" not in result.error and "\n" not in result.error, result.error


async def test_the_answer_of_the_store_decides_the_outcome(proxy: Proxy) -> None:
    denied = await outcome(proxy, Fault.DENIED)
    assert isinstance(denied, DeadLettered) and denied.reason is Dead.FORBIDDEN
    assert "(AccessDenied)" in denied.error, "the reason from the XML of S3 is missing"
    assert await outcome(proxy, Fault.NOT_FOUND) == Skipped(SAMPLE, Skip.MISSING)


# Faults of the whole store, with processes as they are deployed.


def assert_one_line(ended: Ended, code: int, *words: str) -> None:
    errors = [line for line in ended.err.splitlines() if line.startswith("neardup: ")]
    assert (ended.code, len(errors)) == (code, 1), ended.err
    assert "Traceback" not in ended.err
    assert all(word in errors[0] for word in words), errors[0]
    assert ended.err.strip().splitlines()[-1] == errors[0]


@pytest.fixture
def neardup(proxy: Proxy, make_neardup: Make, monkeypatch: pytest.MonkeyPatch) -> Neardup:
    return make_neardup(configuration(proxy.endpoint))


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        (Fault.DENIED, (1, "refused all of", "403 Forbidden (AccessDenied)")),
        (Fault.NO_BUCKET, (1, "no such bucket", "(NoSuchBucket)")),
        (Fault.EXPIRED, (75, "credentials have expired")),
        (Fault.OTHER_REGION, (1, "in another region", "(AuthorizationHeaderMalformed)")),
        (Fault.MOVED, (1, "in another region", "301 Moved Permanently (PermanentRedirect)")),
    ],
)
def test_a_refusal_of_all_pages_stops_the_run(  # noqa: PLR0917
    neardup: Neardup,
    proxy: Proxy,
    undisturbed: State,
    assert_same_state: AssertSameState,
    fault: Fault,
    expected: tuple[int, str],
) -> None:
    proxy.always = lambda _: fault
    ended = neardup("backfill")
    assert_one_line(ended, *expected)
    status = neardup("status", "--json").facts
    assert (status["watermark"], status["dead_letters"]) == (None, {})
    assert (status["runs"][0]["status"], status["running"]) == ("failed", None)
    proxy.plan({})
    assert neardup("backfill").code == 0
    said = find_said(expected[-1], ended.err)
    assert_same_state(f"store: {fault} for every page", 1, STORIES, Bed(neardup.folder).state(), undisturbed, said=said)


def test_credentials_that_expire_during_the_run_lose_nothing(
    neardup: Neardup, proxy: Proxy, undisturbed: State, assert_same_state: AssertSameState
) -> None:
    proxy.plan({})
    proxy.always = lambda _: Fault.EXPIRED if sum(proxy.requests.values()) > before + 30 else Fault.NONE
    before = sum(proxy.requests.values())
    ended = neardup("backfill")
    assert_one_line(ended, 75, "credentials have expired")
    assert neardup("status", "--json").facts["watermark"] is None
    proxy.plan({})
    left = STORIES - len(Bed(neardup.folder).state()["stories"])
    again = neardup("backfill", "--json")
    assert again.facts["status"] == "done"
    said, actual = find_said("credentials have expired", ended.err), Bed(neardup.folder).state()
    assert_same_state("store: credentials expire during the run", 1, left, actual, undisturbed, said=said)


def test_an_outage_opens_the_breaker(
    neardup: Neardup, proxy: Proxy, undisturbed: State, assert_same_state: AssertSameState
) -> None:
    proxy.plan({})
    proxy.always = lambda path: Fault.INTERNAL if PATHS.index(path) >= 20 else Fault.NONE
    ended = neardup("backfill", NEARDUP_RUN__BREAKER_AFTER="25")
    assert_one_line(ended, 75, "the object store failed at", "run.breaker_share", "500 Internal Server Error")
    status = neardup("status", "--json").facts
    assert status["watermark"] is None
    assert sum(status["dead_letters"].values()) < STORIES - 20, "the breaker opened too late"
    proxy.plan({})
    assert neardup("retry", "--json").facts["dead_lettered"] == {}
    assert neardup("status", "--json").facts["watermark"] is None, "a retry moved the watermark"
    assert neardup("backfill", "--json").facts["status"] == "done"
    said, actual = find_said("the object store failed at", ended.err), Bed(neardup.folder).state()
    assert_same_state("store: outage, the circuit breaker opens", 1, STORIES - 20, actual, undisturbed, said=said)
    assert json.loads(neardup("dead-letters", "--json").out) == {"by_reason": {}, "dead_letters": []}
