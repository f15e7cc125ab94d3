"""What a run says of the faults that a store injected into its requests for pages, one by one.

A message that names a page speaks of one fault of that page.  Of the others it is known why nothing was said.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

from tests.support.faults.fault_proxy import Fault
from tests.support.faults.fault_table import NOT_COMPARED, READ_TWICE, RESENT, UNSAID, Said

MESSAGES = {
    "trying again",
    "dead-lettered",
    "a text could not be read",
    "a text could not be read, its candidates wait",
}
BY_MESSAGE, BY_END, UNEXPLAINED = "trying again, dead letter, text not read", "run failed", "nothing"
# Faults that the next request may repair unnoticed; a reset takes with it what of the body was not read yet.
REPEATED = {Fault.RESET: RESENT, Fault.RESET_INSIDE: RESENT, Fault.NOT_FOUND: READ_TWICE}


def take_faults(planned: Mapping[str, Sequence[Fault]], requests: Mapping[str, int]) -> dict[str, list[Fault]]:
    """Path -> the fault of each of its requests, of which there were so many."""
    return {
        path: [*faults, *[Fault.NONE] * requests[path]][: requests[path]]
        for path, faults in planned.items()
        if requests[path]
    }


def explain_faults(
    taken: Mapping[str, list[Fault]], lines: Sequence[Mapping[str, Any]], missing: AbstractSet[str], *, failed: bool
) -> list[tuple[Fault, int, Said]]:
    """Each kind of fault, how many there were, and what says so.

    The `lines` are those of the log, `missing` the paths of dead letters for missing pages, and `failed` the run.
    """
    reasons = [str(line.get("why")) for line in lines if line["event"] in MESSAGES]
    found = Counter[tuple[Fault, str]]()
    for path, faults in taken.items():
        messages = sum(path in reason for reason in reasons) + (path in missing)
        causes = [_find_cause(fault, nth + 1 < len(faults)) for nth, fault in enumerate(faults)]
        for fault, cause in sorted(zip(faults, causes, strict=True), key=lambda both: both[1] is not None):
            if fault is Fault.NONE:
                continue
            by = cause or (BY_END if failed else UNEXPLAINED)
            if messages and fault is not Fault.WRONG_ETAG:
                by, messages = BY_MESSAGE, messages - 1
            found[fault, by] += 1
    unsaid = {*UNSAID, UNEXPLAINED}
    return [(fault, n, Said(by, 0 if by in unsaid else n)) for (fault, by), n in found.items()]


def _find_cause(fault: Fault, answered: bool) -> str | None:
    """Why no message may name the page of a fault, if it was `answered` by a further request; None if one must."""
    if fault is Fault.WRONG_ETAG:
        return NOT_COMPARED
    return REPEATED.get(fault) if answered else None
