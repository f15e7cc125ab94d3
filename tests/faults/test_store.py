"""Whatever the object store does: listed = fingerprinted + skipped + dead-lettered, or the run ends with one line;
and once the store is well, `daily` and `retry` bring about what would be there had nothing happened.
"""

import json
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, event, example, given, settings
from hypothesis import strategies as st
from neardup.config import Content
from neardup.errors import Fatal
from neardup.ledger.dead_letters import Choice
from neardup.records import Dead, DeadLettered, Fingerprinted, Language, Outcome, Skip, Skipped, Story
from neardup.retry import ATTEMPTS
from prometheus_client import REGISTRY

from tests.support.builders import worker_of
from tests.support.command import Ended, Neardup
from tests.support.faults.bed import BUCKET, PATHS, Bed, State, configuration, in_this_process, served_samples
from tests.support.faults.fault_proxy import Fault, Proxy
from tests.support.faults.fault_table import CHAOS, Agree

Make = Callable[..., Neardup]
PASSING = [
    Fault.INTERNAL,
    Fault.SLOW_DOWN,
    Fault.TRUNCATED,
    Fault.RESET,
    Fault.RESET_INSIDE,
    Fault.SILENT,
    Fault.STUCK,
]
OF_A_PAGE = [*PASSING, Fault.DENIED, Fault.NOT_FOUND, Fault.WRONG_ETAG, Fault.NONE]
SLOW = {Fault.SILENT, Fault.STUCK}
STORIES = len(PATHS)
SAMPLE = Story(4100000, Language.HINDI)
SAMPLE_PATH = f"/{BUCKET}/HINDI/4100000.html"


@pytest.fixture(scope="module")
def proxy() -> Iterator[Proxy]:
    with served_samples() as made, in_this_process():
        yield made


@pytest.fixture(scope="module")
def undisturbed(proxy: Proxy, tmp_path_factory: pytest.TempPathFactory) -> State:
    """The run that nothing happened to."""
    bed = Bed(tmp_path_factory.mktemp("undisturbed"))
    bed.configure(configuration(proxy.endpoint))
    proxy.plan({})
    summary = bed.run("backfill")
    assert summary.counts.fingerprinted == STORIES
    return bed.state()


def no_two_missing(faults: list[Fault]) -> bool:
    """A page that was read and then is said to be missing, twice in a row, is taken to be gone."""
    return all({one, other} != {Fault.NOT_FOUND} for one, other in pairwise(faults))


of_a_page = st.lists(st.sampled_from(OF_A_PAGE), max_size=2 * ATTEMPTS).filter(no_two_missing)
mixtures = st.dictionaries(st.sampled_from(PATHS), of_a_page, max_size=20)
of_all = st.sampled_from([{}, {}, {PATHS[40]: [Fault.EXPIRED]}, {PATHS[20]: [Fault.NO_BUCKET]}])


@dataclass(frozen=True)
class Trouble:
    """A run, and what its requests meet."""

    command: str
    pages: dict[str, list[Fault]]
    all: dict[str, list[Fault]]
    breaker_share: float


GONE_FOR_A_MOMENT = {path: [Fault.NONE, Fault.NOT_FOUND] for path in PATHS}  # just when pairs are verified
troubles = st.builds(
    Trouble, st.sampled_from(["backfill", "daily"]), mixtures, of_all, st.sampled_from([0.05, 1.0, 1.0])
)


@settings(deadline=None, max_examples=8 * CHAOS, suppress_health_check=list(HealthCheck))
@given(troubles)
@example(Trouble("backfill", GONE_FOR_A_MOMENT, {}, 1.0))
def test_any_mixture_of_faults_costs_no_story(proxy: Proxy, undisturbed: State, agree: Agree, trouble: Trouble) -> None:
    injected = Counter(proxy.injected)
    with TemporaryDirectory() as folder:
        bed = Bed(Path(folder))
        limits = f"\n[run]\nbreaker_share = {trouble.breaker_share}\nbreaker_after = 20\nworkers = 8\n"
        bed.configure(configuration(proxy.endpoint) + limits)
        proxy.plan(trouble.pages | trouble.all)
        counts, stop = None, None
        try:
            counts = bed.run(trouble.command).counts
        except Fatal as error:
            stop = error
        event(f"ended by {type(stop).__name__}")
        if counts is not None:
            assert counts.listed == STORIES
            missing = Counter({"missing": counts.skipped["missing"]})
            assert letters(bed.ledger) == counts.dead_lettered + missing, "each is on record"
        assert "\n" not in str(stop)
        proxy.plan({})
        if stop is not None:
            bed.run(trouble.command)
        bed.run("daily")
        retried = bed.run("retry", letters=Choice()).counts
        assert not retried.dead_lettered, "the store is well"
        assert letters(bed.ledger) == Counter(), "all that was on record has recovered"
        assert bed.state() == undisturbed
        for fault, n in (proxy.injected - injected).items():
            if fault is not Fault.NONE:
                agree(f"store: {fault}", n, n, bed.state(), undisturbed)


def letters(ledger: Path) -> Counter[str]:
    with closing(sqlite3.connect(ledger)) as db:
        return Counter(dict(db.execute("SELECT reason, count(*) FROM dead_letters GROUP BY reason")))


def retries(reason: str) -> float:
    return REGISTRY.get_sample_value("neardup_retries_total", {"stage": "fetch", "reason": reason}) or 0.0


async def outcome(proxy: Proxy, *faults: Fault) -> Outcome:
    proxy.plan({SAMPLE_PATH: faults})
    content = Content(url=f"s3://{BUCKET}", endpoint=proxy.endpoint, region="us-east-1", path_style=True)
    return (await worker_of(content).process(SAMPLE))[1]


REASONS = {Fault.SLOW_DOWN: "slow_down", Fault.SILENT: "timeout", Fault.STUCK: "timeout"}


@pytest.mark.parametrize("fault", PASSING)
async def test_what_passes_is_tried_again_under_its_name(proxy: Proxy, fault: Fault) -> None:
    reason = REASONS.get(fault, "store_error")
    before, plain = retries(reason), await outcome(proxy)
    made = await outcome(proxy, *[fault] * (ATTEMPTS - 1))
    assert isinstance(made, Fingerprinted) and made == plain
    assert retries(reason) == before + ATTEMPTS - 1


@pytest.mark.parametrize("fault", PASSING)
async def test_what_does_not_pass_is_a_dead_letter(proxy: Proxy, fault: Fault) -> None:
    made = await outcome(proxy, *[fault] * ATTEMPTS)
    assert isinstance(made, DeadLettered) and made.reason is Dead.STORE_ERROR
    assert made.error and "<?xml" not in made.error and "\n" not in made.error, made.error


async def test_what_the_store_means_is_told(proxy: Proxy) -> None:
    denied = await outcome(proxy, Fault.DENIED)
    assert isinstance(denied, DeadLettered) and denied.reason is Dead.FORBIDDEN
    assert "(AccessDenied)" in denied.error, "S3 gives the reason in its XML"
    assert await outcome(proxy, Fault.NOT_FOUND) == Skipped(SAMPLE, Skip.MISSING)
    right, wrong = await outcome(proxy), await outcome(proxy, Fault.WRONG_ETAG)
    assert isinstance(right, Fingerprinted) and isinstance(wrong, Fingerprinted)
    assert wrong.fingerprint == right.fingerprint, "a wrong ETag costs a request the next time"


# What speaks of all pages.  Processes, as they are deployed.


def assert_one_line(ended: Ended, code: int, *words: str) -> None:
    told_so = [line for line in ended.err.splitlines() if line.startswith("neardup: ")]
    assert (ended.code, len(told_so)) == (code, 1), ended.err
    assert "Traceback" not in ended.err
    assert all(word in told_so[0] for word in words), told_so[0]
    assert ended.err.strip().splitlines()[-1] == told_so[0]


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
def test_a_refusal_of_everything_stops_the_run_at_once(  # noqa: PLR0917
    neardup: Neardup,
    proxy: Proxy,
    undisturbed: State,
    agree: Agree,
    fault: Fault,
    expected: tuple[int, str],
) -> None:
    proxy.always = lambda _: fault
    ended = neardup("backfill")
    assert_one_line(ended, *expected)
    assert len(ended.err.strip().splitlines()) == 1, "nothing but that line"
    status = neardup("status", "--json").facts
    assert (status["watermark"], status["dead_letters"]) == (None, {})
    assert (status["runs"][0]["status"], status["running"]) == ("failed", None)
    proxy.plan({})
    assert neardup("backfill").code == 0
    agree(f"store: {fault} for every page", 1, STORIES, Bed(neardup.folder).state(), undisturbed)


def test_credentials_that_expire_on_the_way_cost_nothing(
    neardup: Neardup, proxy: Proxy, undisturbed: State, agree: Agree
) -> None:
    proxy.plan({})
    proxy.always = lambda _: Fault.EXPIRED if sum(proxy.requests.values()) > before + 30 else Fault.NONE
    before = sum(proxy.requests.values())
    assert_one_line(neardup("backfill"), 75, "credentials have expired")
    assert neardup("status", "--json").facts["watermark"] is None
    proxy.plan({})
    left = STORIES - len(Bed(neardup.folder).state()["stories"])
    again = neardup("backfill", "--json")
    assert again.facts["status"] == "done"
    agree("store: credentials expire midway", 1, left, Bed(neardup.folder).state(), undisturbed)


def test_an_outage_opens_the_breaker(neardup: Neardup, proxy: Proxy, undisturbed: State, agree: Agree) -> None:
    proxy.plan({})
    proxy.always = lambda path: Fault.INTERNAL if PATHS.index(path) >= 20 else Fault.NONE
    ended = neardup("backfill", NEARDUP_RUN__BREAKER_AFTER="25")
    assert_one_line(ended, 75, "the object store failed at", "run.breaker_share", "500 Internal Server Error")
    status = neardup("status", "--json").facts
    assert status["watermark"] is None
    assert sum(status["dead_letters"].values()) < STORIES - 20, "not all the rest was dead-lettered"
    proxy.plan({})
    assert neardup("retry", "--json").facts["dead_lettered"] == {}
    assert neardup("status", "--json").facts["watermark"] is None, "that is for those who list all"
    assert neardup("backfill", "--json").facts["status"] == "done"
    agree("store: outage, the breaker opens", 1, STORIES - 20, Bed(neardup.folder).state(), undisturbed)
    assert json.loads(neardup("dead-letters", "--json").out) == {"by_reason": {}, "dead_letters": []}
