"""Laws: the breaker decides on its tallies alone, and a tally forgets what is long ago."""

from hypothesis import given
from hypothesis import strategies as st
from neardup.pages.circuit_breaker import FROM_THE_START, HORIZON, Answer, Tally, counted, why_stop

answers = st.sampled_from(["fine", "failed", "refused"])
shares = st.floats(0, 1)


def tally_of(answered: list[Answer], after: int) -> Tally:
    tally = Tally()
    for answer in answered:
        tally = counted(tally, answer, after)
    return tally


@given(st.lists(answers, max_size=200), st.integers(1, 50))
def test_a_tally_holds_no_more_than_it_should(answered: list[Answer], after: int) -> None:
    tally = tally_of(answered, after)
    assert 0 <= tally.refused <= tally.failed <= tally.asked <= HORIZON * after
    if len(answered) < HORIZON * after:
        failed = sum(answer != "fine" for answer in answered)
        assert tally == Tally(len(answered), failed, answered.count("refused"))


@given(st.lists(answers, max_size=100), shares, st.integers(1, 50))
def test_a_run_goes_on_until_it_was_long_enough_and_the_share_too_large(
    answered: list[Answer], share: float, after: int
) -> None:
    tally = tally_of(answered, after)
    why = why_stop(tally, share, after)
    if tally.asked < after and not (tally.refused == tally.asked >= FROM_THE_START):
        assert why is None
    elif tally.asked >= after:
        assert (why is not None) >= (tally.failed > share * tally.asked)
    if answered and set(answered) == {"fine"}:
        assert why is None, "pages of whatever kind stop no run"


@given(st.integers(0, 2_000), st.integers(1, 100))
def test_an_outage_is_noticed_however_long_all_went_well(before: int, after: int) -> None:
    tally, failed = tally_of(["fine"] * before, after), 0
    while why_stop(tally, 0.05, after) is None:
        tally, failed = counted(tally, "failed", after), failed + 1
    assert failed <= max(after, 0.06 * HORIZON * after + 2), "so many became dead letters"
