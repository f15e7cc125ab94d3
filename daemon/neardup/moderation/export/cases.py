"""The cases that the page of an export lists, each with the pairs that show it best.

A page has room for a few cases.  Each language and kind gets a fair share of the places, so that none keeps another
from being shown.
"""

import sqlite3
from collections import Counter
from collections.abc import Mapping
from typing import TypeVar

from msgspec import Struct

from neardup.ledger import case_queue, clusters, flags, names, similarities
from neardup.ledger.case_queue import FlaggedCase
from neardup.ledger.flags import Selection
from neardup.ledger.similarities import Similarity
from neardup.moderation.export.tables import PAIRS, ExportRow, export_row
from neardup.records import Kind, Language

MAX_CASES_SHOWN = 200  # shared by languages and kinds; reading the texts of more would burden the store
PAIRS_OF_A_CASE = 5

Tally = Counter[tuple[Language, Kind]]  # number of cases by (language, kind)
T = TypeVar("T")


class ListedCase(Struct, frozen=True):
    """A case on the page: the similarity of its lead, the pairs that are shown, and how many more were selected."""

    case: FlaggedCase
    found: Similarity
    pairs: list[ExportRow]
    more: int


def choose(db: sqlite3.Connection, selection: Selection) -> tuple[dict[FlaggedCase, list[int]], Tally]:
    """The cases to list, each with the ids of its flags to show, and the number of all selected cases."""
    every = case_queue.list_flagged_cases(db, selection)
    tally = Counter((case.language, case.kind) for case in every)
    places = share_fairly(tally, MAX_CASES_SHOWN)
    chosen: dict[FlaggedCase, list[int]] = {}
    for case in every:
        if places[case.language, case.kind]:
            places[case.language, case.kind] -= 1
            chosen[case] = case_queue.list_best_flags(db, selection, case.case_id, case.lead, PAIRS_OF_A_CASE)
    return chosen, tally


def list_cases(db: sqlite3.Connection, chosen: Mapping[FlaggedCase, list[int]]) -> list[ListedCase]:
    """The chosen cases with what the page says of them."""
    cluster_of = clusters.map_stories(db)
    rows = flags.read_by_id(db, [flag_id for flag_ids in chosen.values() for flag_id in flag_ids])
    cases: list[ListedCase] = []
    for case, flag_ids in chosen.items():
        pairs = [export_row(rows[flag_id], cluster_of) for flag_id in flag_ids if flag_id in rows]
        lead = case.lead if case.lead is not None or not pairs else pairs[0]["story_id"]
        found = None if lead is None else similarities.read_similarity(db, lead)
        if found is not None and pairs:
            shown = list(names.show_ids(db, pairs, PAIRS.story_ids))
            cases.append(ListedCase(case, found, shown, case.flags - len(pairs)))
    return cases


def share_fairly(sizes: Mapping[T, int], places: int) -> Counter[T]:
    """The number of places of each group, in the order of `sizes`, in all at most `places`.

    No group gets a place that it cannot fill while another still needs it, and a group that does not get all it needs
    has at most one place less than any other (max-min fairness: Bertsekas and Gallager, Data Networks, 1992, 6.5.2).
    """
    granted: Counter[T] = Counter()
    smallest_first = sorted(sizes, key=lambda group: sizes[group])
    for n, group in enumerate(smallest_first):
        granted[group] = min(sizes[group], places // (len(sizes) - n))
        places -= granted[group]
    return Counter({group: granted[group] for group in sizes})
