"""Suppression: which pairs earlier verdicts keep from being flagged again.

A pair that was decided to be not similar or a template is not flagged again as the same kind or a less severe one.
Neither is a pair without a verdict of its own, if one decision on a case covers both of its stories.  A more severe
match is always flagged.
"""

from collections.abc import Mapping

from msgspec import Struct

from neardup.core.verify.tiers import find_tier
from neardup.records import Kind, Verdict

SUPPRESSING = (Verdict.NOT_SIMILAR, Verdict.TEMPLATE)


class ActiveVerdict(Struct, frozen=True):
    """A verdict that was neither undone nor replaced, and the kind of the flag that it was given on."""

    verdict_id: int
    verdict: Verdict
    kind: Kind

    def covers(self, kind: Kind) -> bool:
        """Whether it was given on a match of this kind or of a more severe one."""
        return find_tier(self.kind).severity <= find_tier(kind).severity


# The suppressing verdicts on the pairs of one story, by decision and case: a decision may cover several cases.
Decisions = Mapping[tuple[int, int], ActiveVerdict]


class Ruling(Struct, frozen=True):
    """What the verdicts on record mean for a pair that was just verified.

    - `status`: the status of its flag: "open", or the verdict that still applies; None where it gets no flag.
    - `suppressed_by`: the verdict that suppresses the pair, to be recorded; None where none does.
    - `is_new`: whether the flag is news: never shown before as this kind, and not covered by a verdict.
    """

    status: str | None
    suppressed_by: int | None
    is_new: bool


def rule(
    kind: Kind, shown_as: Kind | None, own: ActiveVerdict | None, decisions: tuple[Decisions, Decisions]
) -> Ruling:
    """Apply the verdicts on record to a pair that was verified to be of `kind`.

    `shown_as` is the kind of its present flag, None where it has none; `own` is the active verdict on the pair.
    `decisions`, one mapping for each of its stories, count only for a pair that has neither.
    """
    shared = find_decision_on_both(*decisions) if own is None and shown_as is None else None
    verdict = own or shared
    if verdict is None or not verdict.covers(kind):
        return Ruling("open", None, is_new=shown_as != kind)
    suppresses = verdict.verdict in SUPPRESSING and shown_as is None
    return Ruling(
        status=verdict.verdict if verdict is own else None,
        suppressed_by=verdict.verdict_id if suppresses else None,
        is_new=False,
    )


def find_status(kind: Kind, own: ActiveVerdict | None) -> str:
    """The status of a flag of this kind whose pair has this active verdict."""
    return own.verdict if own is not None and own.covers(kind) else "open"


def find_decision_on_both(a: Decisions, b: Decisions) -> ActiveVerdict | None:
    """The latest decision that covers both stories, with the most severe kind that either was flagged as in it."""
    shared = [
        ActiveVerdict(
            max(a[decision].verdict_id, b[decision].verdict_id),
            a[decision].verdict,
            find_most_severe(a[decision].kind, b[decision].kind),
        )
        for decision in a.keys() & b.keys()
    ]
    return max(shared, key=lambda verdict: verdict.verdict_id, default=None)


def find_most_severe(a: Kind, b: Kind) -> Kind:
    """The more severe of two kinds."""
    return min(a, b, key=lambda kind: find_tier(kind).severity)


def template_suppresses(*, is_template: bool, has_status: bool, template_matched: bool) -> bool:
    """Whether a match is dropped because the story already matches another copy of a template.

    A thousand copies of a template would otherwise cost a thousand flags.  A match that is flagged or decided
    already (`has_status`) is verified again all the same.
    """
    return is_template and template_matched and not has_status
