"""The tables of an export: the columns of each in their order, and its rows, the same in every format.

They are the verified pairs, the translated and retold pairs, the stories that copy, and the members of clusters.
Programs rely on the order of the columns, so a new one is appended.  Times are in RFC 3339, and unknown values are
None.
"""

import json
import sqlite3
from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from neardup.core.publication_order import make_sort_key
from neardup.core.verify.clusters import Member, Policy, choose_kept
from neardup.core.verify.tiers import list_kinds_of_meaning
from neardup.errors import Misuse
from neardup.ledger import Row, flags
from neardup.ledger.flags import Selection, find_earlier_story
from neardup.ledger.similarities import unpack_spans
from neardup.moderation.wording import describe_row_order, describe_top_source_order
from neardup.records import format_time

ExportRow = dict[str, Any]  # the columns of a table, in their order; None if a value is unknown


# The types of columns, in whichever table they are; those in none of these sets are texts.
IDS = frozenset({"flag_id", "story_id", "matched_id", "earlier_id", "cluster_id", "top_source_id"})
TIMES = frozenset(
    {
        *(
            f"{side}{date}"
            for side in ("", "story_", "matched_")
            for date in ("published_at", "updated_at", "known_since")
        ),
        *("flagged_at", "decided_at", "undone_at", "permission_until"),
    }
)
FLOATS = frozenset({"similarity", "jaccard", "containment", "matched_containment", "margin", "top_share"})
INTEGERS = frozenset(
    {"hamming", "longest_run_words", "cluster_size", "copied_words", "permission_id", "words", "sources"}
)
BOOLEANS = frozenset({"same_author", "estimated", "by_passages", "hidden", "keep"})


class Table(Struct, frozen=True):
    """The columns of an export by name, in their order.

    `rows` is what the rows are, in the plural.  `widths` are in characters, for spreadsheets.
    """

    rows: str
    columns: tuple[str, ...]
    widths: Mapping[str, int]

    @property
    def story_ids(self) -> frozenset[str]:
        """The columns of ids that are those of stories, which are names where the listing gives names."""
        return IDS & {*self.columns} - {"flag_id"}

    def make_row(self, values: Mapping[str, Any]) -> ExportRow:
        """The columns of these values, with times in RFC 3339."""
        return {column: format_time(values[column]) if column in TIMES else values[column] for column in self.columns}


# Verified pairs.

PAIR_COLUMNS = (
    "flag_id", "kind", "language", "story_id", "matched_id", "similarity", "hamming", "jaccard", "containment",
    "matched_containment", "longest_run_words", "story_title", "matched_title", "story_author_id",
    "matched_author_id", "same_author", "story_published_at", "matched_published_at", "earlier_id", "status",
    "flagged_at", "fingerprint_version", "cluster_id", "cluster_size", "estimated", "context", "story_path",
    "matched_path", "copied_words", "publication_order", "story_updated_at", "matched_updated_at",
    "story_known_since", "matched_known_since", "verdict", "moderator", "note", "decided_at",
    "undone_at", "undone_by", "catalogue", "licence", "permission_id", "permission_licence", "permission_until",
    "story_serial", "matched_serial",
)  # fmt: skip
PAIRS = Table(
    "pairs",
    PAIR_COLUMNS,
    {"kind": 9, "language": 12, "story_title": 40, "matched_title": 40, "publication_order": 40, "note": 40},
)
# What an import needs of a flag beside these columns; Parquet has them, since programs read it.
WHOLE_PAIRS = replace(PAIRS, columns=(*PAIR_COLUMNS, "by_passages", "signals", "story_spans", "matched_spans"))

ClusterOfStory = Mapping[int, tuple[int, int]]  # story id -> (its first story, size) of its cluster
NO_CLUSTER = (None, None)


def export_row(row: Row, cluster_of: ClusterOfStory) -> ExportRow:
    """Convert a row of the view `pairs` to the columns of the export."""
    pair = dict(row)
    cluster = cluster_of.get(pair["story_id"], NO_CLUSTER)
    # a flag that was withdrawn, or decided as not similar, puts its stories in no common cluster
    share_cluster = cluster == cluster_of.get(pair["matched_id"])
    pair["cluster_id"], pair["cluster_size"] = cluster if share_cluster else NO_CLUSTER
    pair["estimated"] = bool(pair["estimated"])
    authors = pair["story_author_id"], pair["matched_author_id"]
    pair["same_author"] = authors[0] == authors[1] if None not in authors else None
    pair["earlier_id"] = find_earlier_story(pair)
    pair["publication_order"] = describe_row_order(pair)
    return PAIRS.make_row(pair)


def make_whole_row(db: sqlite3.Connection, row: ExportRow) -> ExportRow:
    """A row of an export with the further columns of WHOLE_PAIRS.

    `signals` is a JSON object, and spans are JSON arrays of [start, end) in words, counted from 0; None if there are
    none.
    """
    by_passages, signals, *spans = db.execute(
        "SELECT by_passages, signals, spans_a, spans_b FROM flags WHERE flag_id = ?", (row["flag_id"],)
    ).fetchone()
    if row["story_id"] > row["matched_id"]:
        spans.reverse()
    story, matched = (None if packed is None else json.dumps(unpack_spans(packed).tolist()) for packed in spans)
    further = {"by_passages": bool(by_passages), "signals": signals, "story_spans": story, "matched_spans": matched}
    return row | further


# Translated and retold pairs.

MEANING_COLUMNS = (
    "flag_id", "kind", "margin", "language", "matched_language", "story_id", "matched_id", "story_title",
    "matched_title", "story_author_id", "matched_author_id", "same_author", "story_published_at",
    "matched_published_at", "earlier_id", "status", "flagged_at", "model", "chunks", "story_path", "matched_path",
    "story_known_since", "matched_known_since", "moderator", "note", "decided_at",
    "catalogue", "licence",
)  # fmt: skip
MEANING_PAIRS = Table(
    "pairs",
    MEANING_COLUMNS,
    {"kind": 10, "language": 12, "matched_language": 12, "story_title": 40, "matched_title": 40, "note": 40},
)


def is_of_meaning(selection: Selection) -> bool:
    """Whether a selection asks for translated or retold pairs.

    Raises Misuse if it asks for others as well, or has a filter that these pairs do not have.
    """
    chosen_kinds = set(selection.kinds) & set(list_kinds_of_meaning())
    if not chosen_kinds:
        return False
    if len(chosen_kinds) < len(set(selection.kinds)):
        raise Misuse(
            f"--kind: {' and '.join(sorted(chosen_kinds))} cannot be exported together with kinds of verified copies"
        )
    for option, value in (("--min-similarity", selection.similarity), ("--cluster", selection.cluster)):
        if value is not None:
            raise Misuse(f"{option}: {' and '.join(sorted(chosen_kinds))} pairs have none")
    return True


def convert_meaning_row(row: Row) -> ExportRow:
    """Convert a row of the view `meaning_pairs` to the columns of the export.

    `chunks` is the JSON array of the aligned chunks, counted from 0: that of the lower id, that of the higher, cosine.
    """
    pair = row | {"earlier_id": find_earlier_story(row), "same_author": bool(row["same_author"])}
    if None in (row["story_author_id"], row["matched_author_id"]):
        pair["same_author"] = None
    return MEANING_PAIRS.make_row(pair)


# Stories that copy.

STORY_COLUMNS = (
    "story_id", "language", "title", "author_id", "published_at", "similarity", "copied_words", "words", "sources",
    "top_source_id", "top_source_title", "top_source_author_id", "top_share", "kinds", "path",
    "publication_order", "updated_at", "known_since", "verdict", "moderator", "note", "decided_at",
    "undone_at", "undone_by", "top_source_catalogue", "top_source_licence", "hidden",
)  # fmt: skip
STORIES = Table(
    "stories",
    STORY_COLUMNS,
    {"title": 40, "top_source_title": 40, "kinds": 20, "publication_order": 40, "note": 40},
)


def convert_story_row(row: Row) -> ExportRow:
    """Convert a row of `similarities.select` to the columns of the export."""
    return STORIES.make_row(row | {"publication_order": describe_top_source_order(row), "hidden": bool(row["hidden"])})


# Members of clusters.

MEMBER_COLUMNS = (
    "cluster_id", "cluster_size", "story_id", "keep", "language", "title", "author_id", "published_at", "updated_at",
    "known_since", "words", "path", "catalogue", "licence",
)  # fmt: skip
MEMBERS = Table("members", MEMBER_COLUMNS, {"language": 12, "title": 40})


def list_member_rows(db: sqlite3.Connection, selection: Selection, policy: Policy) -> Iterator[ExportRow]:
    """A row for each member of the selected clusters: the largest cluster first, in it those to keep first."""
    for cluster_id, members in flags.select_cluster_members(db, selection):
        keep = choose_kept(
            [Member(member["id"], member["published_at"], member["words"]) for member in members], policy
        )
        ascending = sorted(
            members, key=lambda member: (member["id"] not in keep, make_sort_key(member["published_at"], member["id"]))
        )
        for member in ascending:
            about = {"cluster_id": cluster_id, "cluster_size": len(members), "story_id": member["id"]}
            yield MEMBERS.make_row(member | about | {"keep": member["id"] in keep})
