"""The figures of a pair in words.  A is the match, as a rule the earlier story; B is the story."""

from collections.abc import Iterator
from datetime import datetime

from daemon.records import Kind
from daemon.review.export.pairs import Pair

KINDS = {
    Kind.EXACT: "the same text",
    Kind.NEAR: "a word or two changed",
    Kind.SIMILAR: "the same story with changes throughout, or with much added",
    Kind.PARTIAL: "a large part of one stands in the other",
}
UNITS = (("year", 31_557_600), ("day", 86_400), ("hour", 3600), ("minute", 60), ("second", 1))


def findings(pair: Pair) -> Iterator[str]:
    """What was found, a sentence each."""
    if pair["containment"] is not None:
        yield (
            f"{'About ' if pair['estimated'] else ''}{percent(pair['containment'])} of B stands in A, "
            f"{percent(pair['matched_containment'])} of A in B"
        )
    if pair["longest_run_words"]:
        yield f"{_counted(pair['longest_run_words'], 'word')} on end are the same"
    yield f"{pair['hamming']} of 128 bits differ" if pair["hamming"] else "the fingerprints are equal"
    if pair["jaccard"] is not None:
        yield f"Jaccard {pair['jaccard']:.2f}"
    if pair["estimated"]:
        yield "estimated, for a text is gone"


def who_was_first(pair: Pair) -> Iterator[str]:
    """What is known of times and authors, a sentence each."""
    times = pair["matched_published_at"], pair["story_published_at"]
    if None in times:
        yield "which came first is not known"
    elif pair["earlier_id"] is None:
        yield "published at the same time"
    else:
        apart = datetime.fromisoformat(times[1]) - datetime.fromisoformat(times[0])
        yield f"A was published first, by {_length(apart.total_seconds())}"
    if pair["same_author"] is not None:
        yield "one author wrote both" if pair["same_author"] else "two authors"


def percent(share: float) -> str:
    """100 % is all of it, 0 % nothing."""
    return f"{min(max(round(100 * share), 1), 99) if 0 < share < 1 else round(100 * share)} %"


def _length(seconds: float) -> str:
    for unit, size in UNITS:
        if seconds >= size:
            return _counted(int(seconds // size), unit)
    return "less than a second"


def _counted(n: int, thing: str) -> str:
    return f"{n:,} {thing}{'' if n == 1 else 's'}"
