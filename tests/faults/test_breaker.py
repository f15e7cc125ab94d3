"""Laws: the breaker decides on its tallies alone, and a tally forgets what is long ago."""

from hypothesis import given
from hypothesis import strategies as st
from neardup.pages.circuit_breaker import MIN_REFUSALS, TALLY_SPAN, Answer, Tally, stop_reason, with_answer

answers = st.sampled_from(["fine", "failed", "refused"])
shares = st.floats(0, 1)


def tally_of(answered: list[Answer], after: int) -> Tally:
    tally = Tally()
    for answer in answered:
        tally = with_answer(tally, answer, after)
    return tally


@given(st.lists(answers, max_size=200), st.integers(1, 50))
def test_a_tally_holds_no_more_than_it_should(answered: list[Answer], after: int) -> None:
    tally = tally_of(answered, after)
    assert 0 <= tally.refused <= tally.failed <= tally.asked <= TALLY_SPAN * after
    if len(answered) < TALLY_SPAN * after:
        failed = sum(answer != "fine" for answer in answered)
        assert tally == Tally(len(answered), failed, answered.count("refused"))


@given(st.lists(answers, max_size=100), shares, st.integers(1, 50))
def test_a_run_goes_on_until_it_was_long_enough_and_the_share_too_large(
    answered: list[Answer], share: float, after: int
) -> None:
    tally = tally_of(answered, after)
    why = stop_reason(tally, share, after)
    if tally.asked < after and not (tally.refused == tally.asked >= MIN_REFUSALS):
        assert why is None
    elif tally.asked >= after:
        assert (why is not None) >= (tally.failed > share * tally.asked)
    if answered and set(answered) == {"fine"}:
        assert why is None, "pages of whatever kind stop no run"


@given(st.integers(0, 2_000), st.integers(1, 100))
def test_an_outage_is_noticed_however_long_all_went_well(before: int, after: int) -> None:
    tally, failed = tally_of(["fine"] * before, after), 0
    while stop_reason(tally, 0.05, after) is None:
        tally, failed = with_answer(tally, "failed", after), failed + 1
    assert failed <= max(after, 0.06 * TALLY_SPAN * after + 2), "so many became dead letters"
