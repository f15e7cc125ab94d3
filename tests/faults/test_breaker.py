"""Laws: the circuit breaker decides on its tallies alone, and a tally forgets old answers."""

from hypothesis import given
from hypothesis import strategies as st
from neardup.pages.limits import MIN_REFUSALS, TALLY_SPAN, Answer, Tally, count_answers, stop_reason

answers = st.sampled_from(["fine", "failed", "refused"])
shares = st.floats(0, 1)


def tally_of(results: list[Answer], after: int) -> Tally:
    tally = Tally()
    for answer in results:
        tally = count_answers(tally, answer, after)
    return tally


@given(st.lists(answers, max_size=200), st.integers(1, 50))
def test_a_tally_is_bounded_and_counts_recent_answers(results: list[Answer], after: int) -> None:
    tally = tally_of(results, after)
    assert 0 <= tally.refused <= tally.failed <= tally.requests <= TALLY_SPAN * after
    if len(results) < TALLY_SPAN * after:
        failed = sum(answer != "fine" for answer in results)
        assert tally == Tally(len(results), failed, results.count("refused"))


@given(st.lists(answers, max_size=50), answers, st.integers(0, 300), st.integers(1, 10))
def test_equal_answers_count_as_if_they_came_one_by_one(
    before: list[Answer], answer: Answer, count: int, after: int
) -> None:
    assert count_answers(tally_of(before, after), answer, after, count) == tally_of([*before, *[answer] * count], after)


@given(st.lists(answers, max_size=100), shares, st.integers(1, 50))
def test_the_breaker_opens_only_above_its_share(results: list[Answer], share: float, after: int) -> None:
    tally = tally_of(results, after)
    why = stop_reason(tally, share, after)
    if tally.requests < after and not (tally.refused == tally.requests >= MIN_REFUSALS):
        assert why is None
    elif tally.requests >= after:
        assert (why is not None) >= (tally.failed > share * tally.requests)
    if results and set(results) == {"fine"}:
        assert why is None, "the breaker opened without a failure"


@given(st.integers(0, 2_000), st.integers(1, 100))
def test_an_outage_is_noticed_after_any_number_of_successes(before: int, after: int) -> None:
    tally, failed = tally_of(["fine"] * before, after), 0
    while stop_reason(tally, 0.05, after) is None:
        tally, failed = count_answers(tally, "failed", after), failed + 1
    assert failed <= max(after, 0.06 * TALLY_SPAN * after + 2), "the outage was noticed too late"
