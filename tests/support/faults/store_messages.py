"""What a run says of the faults that a store injected into its requests for pages, one by one.

A message that names a page speaks of one fault of that page.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

from tests.support.faults.fault_proxy import Fault, InjectedFault
from tests.support.faults.fault_table import Said

MESSAGES = {
    "trying again",
    "dead-lettered",
    "a text could not be read",
    "a text could not be read, its candidates wait",
}
BY_MESSAGE, BY_END = "trying again, dead letter, text not read", "run failed"


def find_messages(lines: Iterable[Mapping[str, Any]]) -> list[str]:
    """What the lines of a log say of faults of the store; each names the page."""
    return [str(line.get("why")) for line in lines if line["event"] in MESSAGES]


def explain_faults(
    injected: Sequence[InjectedFault], lines: Iterable[Mapping[str, Any]], missing: AbstractSet[str], *, failed: bool
) -> list[tuple[Fault, int, Said]]:
    """Each kind of fault, how many there were, and what says so.

    The `lines` are those of the log, `missing` the paths of dead letters for missing pages, and `failed` the run.
    """
    messages, by_path = find_messages(lines), defaultdict[str, list[Fault]](list)
    for fault in injected:
        by_path[fault.path].append(fault.kind)
    said, unsaid = Counter[Fault](), Counter[Fault]()
    for path, faults in by_path.items():
        count = sum(path in message for message in messages) + (path in missing)
        said.update(faults[:count])
        unsaid.update(faults[count:])
    return [
        *((fault, n, Said(BY_MESSAGE, n)) for fault, n in said.items()),
        *((fault, n, Said(BY_END, n if failed else 0)) for fault, n in unsaid.items()),
    ]
