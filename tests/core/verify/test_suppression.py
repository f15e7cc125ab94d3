"""Laws of suppression: a verdict covers its own kind and less severe ones, and never hides a more severe match."""

from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st
from neardup.core.verify.suppression import (
    SUPPRESSING,
    ActiveVerdict,
    find_decision_on_both,
    find_status,
    rule,
    template_suppresses,
)
from neardup.core.verify.tiers import list_kinds
from neardup.records import DECIDING, Kind

Decisions = Mapping[tuple[int, int], ActiveVerdict]

RANK = {kind: n for n, kind in enumerate(list_kinds())}
NO_DECISIONS: tuple[Decisions, Decisions] = ({}, {})
kind_names = st.sampled_from(list_kinds())
maybe_shown = st.none() | kind_names
verdicts = st.builds(ActiveVerdict, st.integers(1, 99), st.sampled_from(DECIDING), kind_names)
suppressing = st.builds(ActiveVerdict, st.integers(1, 99), st.sampled_from(SUPPRESSING), kind_names)
both = st.tuples(*[st.dictionaries(st.tuples(st.integers(1, 3), st.just(1)), suppressing)] * 2)


@given(kind_names, maybe_shown, st.none() | verdicts, both)
def test_no_verdict_hides_a_more_severe_match(
    kind: Kind, shown_as: Kind | None, own: ActiveVerdict | None, decisions: tuple[Decisions, Decisions]
) -> None:
    ruling = rule(kind, shown_as, own, decisions)
    applicable = [own, *decisions[0].values(), *decisions[1].values()]
    if all(RANK[kind] < RANK[verdict.kind] for verdict in applicable if verdict):
        assert (ruling.status, ruling.suppressed_by, ruling.is_new) == ("open", None, shown_as != kind)


@given(kind_names, maybe_shown, verdicts, both)
def test_own_verdict_alone_decides_the_status(
    kind: Kind, shown_as: Kind | None, own: ActiveVerdict, decisions: tuple[Decisions, Decisions]
) -> None:
    ruling = rule(kind, shown_as, own, decisions)
    assert ruling == rule(kind, shown_as, own, NO_DECISIONS), "decisions count only where there is no own verdict"
    assert ruling.status == find_status(kind, own) == (own.verdict if RANK[own.kind] <= RANK[kind] else "open")


@given(kind_names, verdicts)
def test_only_suppressing_verdicts_suppress_hidden_pairs(kind: Kind, own: ActiveVerdict) -> None:
    suppresses = own.verdict in SUPPRESSING and RANK[own.kind] <= RANK[kind]
    assert rule(kind, None, own, NO_DECISIONS).suppressed_by == (own.verdict_id if suppresses else None)
    assert rule(kind, kind, own, NO_DECISIONS).suppressed_by is None, "a flag that is shown is not suppressed"


@given(kind_names, both)
def test_shared_decision_leaves_a_covered_pair_without_flag(kind: Kind, decisions: tuple[Decisions, Decisions]) -> None:
    shared = find_decision_on_both(*decisions)
    ruling = rule(kind, None, None, decisions)
    covered = shared is not None and RANK[shared.kind] <= RANK[kind]
    assert (ruling.status is None) == (ruling.suppressed_by is not None) == covered
    assert rule(kind, kind, None, decisions).status == "open", "a flag that is shown stays"


@given(both)
def test_shared_decision_is_the_latest_on_both_stories(decisions: tuple[Decisions, Decisions]) -> None:
    first, second = decisions
    shared = find_decision_on_both(first, second)
    common = first.keys() & second.keys()
    assert (shared is None) == (not common)
    if shared is not None:
        sides = [side[decision] for decision in common for side in decisions]
        assert shared.verdict_id == max(verdict.verdict_id for verdict in sides)
        most_severe = [min(first[n].kind, second[n].kind, key=RANK.__getitem__) for n in common]
        assert shared.kind in most_severe, "of the two sides, the more severe kind counts"


@given(kind_names, maybe_shown, st.none() | verdicts, both)
def test_flag_is_new_only_when_open(
    kind: Kind, shown_as: Kind | None, own: ActiveVerdict | None, decisions: tuple[Decisions, Decisions]
) -> None:
    ruling = rule(kind, shown_as, own, decisions)
    assert not ruling.is_new or (ruling.status == "open" and shown_as != kind)


@given(st.booleans(), st.booleans(), st.booleans())
def test_template_suppresses_only_further_unflagged_copies(template: bool, status: bool, matched: bool) -> None:
    suppressed = template_suppresses(is_template=template, has_status=status, template_matched=matched)
    assert suppressed == (template and matched and not status)
