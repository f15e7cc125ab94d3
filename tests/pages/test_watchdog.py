"""Laws of the watchdog: a page is costly by the CPU time spent on it, and only a process without CPU time stands still.

The clocks are the test's; `tests/pages/test_reader_faults.py` stops real processes.
"""

from unittest.mock import patch

from hypothesis import given
from hypothesis import strategies as st
from neardup.pages import watchdog
from neardup.pages.s3 import REQUEST_SECONDS
from neardup.pages.watchdog import (
    COSTLY_SECONDS,
    MOST_SECONDS_BETWEEN,
    NO_PAGE,
    STILL_SECONDS,
    Record,
    Stillness,
    WatchedProcess,
    create_record,
)

# each check of a process: seconds since the last one, CPU seconds since then, whether the process is idle
checks = st.lists(st.tuples(st.floats(0.01, 100), st.sampled_from([0.0, 0.0, 0.0, 0.001]), st.booleans()))
# each check of a page: CPU seconds since the last one, the request being computed
computed = st.lists(st.tuples(st.floats(0, 1), st.sampled_from([NO_PAGE, 1, 2])))


@given(checks)
def test_a_process_stands_still_only_without_cpu_time(made: list[tuple[float, float, bool]]) -> None:
    now, cpu, still, stillness = 0.0, 0.0, 0.0, Stillness(1)
    for n, (passed, spent, idle) in enumerate(made):
        now, cpu = now + passed, cpu + spent
        still = still + min(passed, MOST_SECONDS_BETWEEN) if n and not spent and not idle else 0.0
        with patch.object(watchdog, "read_cpu_seconds", return_value=cpu), patch("time.monotonic", return_value=now):
            lasts = stillness.lasts(idle=idle)
        assert lasts == (still >= STILL_SECONDS), f"check {n}: still for {still} s"


def test_a_slow_store_is_no_stand_still() -> None:
    assert STILL_SECONDS >= 2 * REQUEST_SECONDS, "a process that waits for a response would be replaced"


@given(computed)
def test_a_page_is_costly_by_its_own_cpu_time(made: list[tuple[float, int]]) -> None:
    record = Record(create_record())
    process, cpu, spent, last = WatchedProcess(1, record, 0), 0.0, 0.0, NO_PAGE
    for seconds, number in made:
        cpu += seconds
        spent, last = (spent + seconds if number == last else 0.0), number
        record.begin(number) if number != NO_PAGE else record.end()
        with (
            patch.object(watchdog, "read_cpu_seconds", return_value=cpu),
            patch.object(watchdog, "read_resident_bytes", return_value=0),
        ):
            process.check_budgets()
        if abs(spent - COSTLY_SECONDS) > 1e-6:  # sums of floats
            assert process.costly == (number if spent >= COSTLY_SECONDS else NO_PAGE), f"{spent} s on {number}"
