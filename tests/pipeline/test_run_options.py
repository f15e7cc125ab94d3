"""`--fresh` is proposed to a first backfill that is large enough for it to pay, and to no other run."""

import pytest
from neardup.pipeline.run import FRESH_PAYS, FreshProposal, Options
from neardup.pipeline.summary import Counts, Progress
from structlog.testing import capture_logs


def proposed(options: Options, stories: int, held: int = 0) -> list[int]:
    """The sizes for which `--fresh` is proposed while a listing of so many stories is read."""
    proposal = FreshProposal(options)
    with capture_logs() as lines:
        for listed in (0, stories // 10, stories):
            progress = Progress(Counts(fingerprinted=listed), position=40 * listed, size=40 * stories)
            proposal.consider(progress, held)
    return [line["about"] for line in lines]


def test_a_large_first_backfill_is_proposed_fresh_once() -> None:
    assert proposed(Options("backfill"), FRESH_PAYS) == [FRESH_PAYS]


@pytest.mark.parametrize(
    ("options", "stories", "held"),
    [
        (Options("backfill"), FRESH_PAYS - 10, 0),
        (Options("backfill"), FRESH_PAYS, 1),
        (Options("backfill", fresh=True), FRESH_PAYS, 0),
        (Options("daily"), FRESH_PAYS, 0),
        (Options("retry", dead_letters=True), FRESH_PAYS, 0),
    ],
)
def test_no_other_run_is_proposed_fresh(options: Options, stories: int, held: int) -> None:
    assert proposed(options, stories, held) == []
