"""What the comparisons of index and ledger found in a run."""

from dataclasses import dataclass


@dataclass(slots=True)
class IndexFaults:
    """What the comparisons of a run found and did.

    Of `sampled` stories `incomplete` lacked `missing` entries.  `restored` stories were written again, or the index
    was rebuilt, `rebuilds` times; `looked_up_again` stories had been looked up while the index may have been damaged.
    """

    sampled: int = 0
    incomplete: int = 0
    missing: int = 0
    restored: int = 0
    rebuilds: int = 0
    looked_up_again: int = 0
