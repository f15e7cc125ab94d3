"""The answers of the desk's JSON API, made from the ledger: cases, decisions, complaints, hidden authors, and pairs."""

import json
import sqlite3
from collections.abc import Mapping
from itertools import chain
from typing import Any

from msgspec.structs import asdict

from neardup.ledger import (
    Row,
    authors,
    case_queue,
    cases,
    flags,
    meaning_flags,
    names,
    removed_texts,
    serials,
    verdicts,
)
from neardup.ledger import complaints as ledger_complaints
from neardup.ledger.complaints import Complaint
from neardup.ledger.marks import read_marks
from neardup.moderation.desk import api_messages as messages
from neardup.moderation.desk import deciding
from neardup.moderation.desk.addresses import CaseQueue, MeaningQueue, Pair
from neardup.moderation.desk.cases import BlindCase, list_blind_cases
from neardup.moderation.desk.moderators import Moderator
from neardup.moderation.export.tables import MEANING_PAIRS, convert_meaning_row
from neardup.records import Marks, ShownId, format_time

SHOWN_PAIRS = 1_000
PAIR_IDS = "story_id", "matched_id"


# Cases and decisions.


def list_cases(db: sqlite3.Connection, queue: CaseQueue, first: int, limit: int) -> messages.CasesAnswer:
    """A part of a queue of cases, from position `first`, with how many cases there are."""
    rows = case_queue.select(db, queue.selection, queue.order, limit=limit, offset=first)
    shown = names.read_shown_ids(db, chain.from_iterable((row["case_id"], row["lead"]) for row in rows))
    held = cases.read_held_leases(db, [row["case_id"] for row in rows])
    marks = read_marks(db, [row["lead"] for row in rows])
    listed = [_list_case(row, shown, held.get(row["case_id"]), marks.get(row["lead"], ())) for row in rows]
    counts = messages.Counts.model_validate(case_queue.count_by_filter(db, queue.selection), from_attributes=True)
    return messages.CasesAnswer(counts=counts, cases=listed)


def read_case(db: sqlite3.Connection, case_id: int) -> messages.Case | None:
    """A case with the first of its pairs, the open ones first, and the decisions on it, the newest first."""
    row = case_queue.read_case(db, case_id)
    if row is None:
        return None
    found = deciding.list_flags_of_case(db, case_id)
    pairs = flags.list_pairs(db, list(chain(*found))[:SHOWN_PAIRS])
    shown = names.read_shown_ids(db, (case_id, row["lead"]))
    marks = read_marks(db, [row["lead"]]).get(row["lead"], ())
    listed = _list_case(row, shown, cases.read_held_leases(db, [case_id]).get(case_id), marks)
    return messages.Case(
        **dict(listed),
        seen=verdicts.identify_state(db, found.open),
        decided_seen=verdicts.identify_state(db, found.decided),
        evidence=[messages.ShownPair(**pair) for pair in names.show_ids(db, pairs, PAIR_IDS)],
        removed_texts=[
            messages.RemovedText(**match | {"removed_at": format_time(match["removed_at"])})
            for match in removed_texts.read_of_stories(db, [row["lead"]])
        ],
        serials=[messages.Serials(**match.as_dict()) for match in serials.list_matches_of_case(db, case_id)],
        decisions=[_describe_decision(given) for given in verdicts.list_of_case(db, case_id)],
    )


def _list_case(row: Row, shown: Mapping[int, ShownId], lease: cases.Lease | None, marks: Marks) -> messages.ListedCase:
    return messages.ListedCase(
        case_id=shown[row["case_id"]],
        language=row["language"],
        lead=messages.Lead(
            story_id=shown[row["lead"]],
            title=row["title"],
            author_id=row["author"],
            published_at=format_time(row["published_at"]),
            words=row["words"],
            marks=[messages.ShownMark(**asdict(mark)) for mark in marks],
        ),
        similarity=row["similarity"],
        kinds=row["kinds"].strip(",").split(","),
        statuses=row["statuses"].strip(",").split(","),
        catalogues=[name for name in row["catalogues"].split(",") if name],
        pairs=row["flags"],
        open_pairs=row["open_flags"],
        stories=row["stories"],
        same_author=bool(row["same_author"]),
        order_known=bool(row["is_ordered"]),
        author_cases_of_plagiarism=row["history"],
        flagged_at=format_time(row["flagged_at"]),
        second_opinion_asked_by=json.loads(row["unsure"]),
        lease=lease and describe_lease(lease),
    )


def describe_lease(lease: cases.Lease) -> messages.Lease:
    """Who holds a case, and until when."""
    return messages.Lease(moderator=lease.moderator, until=format_time(lease.until))


def _describe_decision(row: Row) -> messages.GivenDecision:
    times = {name: format_time(row[name]) for name in ("decided_at", "undone_at")}
    return messages.GivenDecision(**row | times)


def list_second_reviews(
    db: sqlite3.Connection, share: float, moderator: Moderator, first: int, limit: int
) -> messages.SecondAnswer:
    """The cases that wait for a second review, from position `first`, with nothing that a verdict has changed."""
    total, found = list_blind_cases(db, share, moderator, first, limit)
    return messages.SecondAnswer(total=total, cases=[_blind_case(db, case) for case in found])


def _blind_case(db: sqlite3.Connection, case: BlindCase) -> messages.BlindCase:
    row = case.row
    marks = read_marks(db, [row["lead"]]).get(row["lead"], ())
    listed = _list_case(row, names.read_shown_ids(db, (row["case_id"], row["lead"])), None, marks)
    pairs = names.show_ids(db, case.pairs, PAIR_IDS)
    return messages.BlindCase(**dict(listed), seen=case.seen, evidence=[messages.BlindPair(**pair) for pair in pairs])


def read_decision(db: sqlite3.Connection, number: int) -> messages.Decision | None:
    """A decision with the pairs that it is about; `seen` is what undoing it asks for."""
    found = deciding.read_decision(db, number)
    if found is None:
        return None
    return messages.Decision(
        decision=number,
        verdict=found.verdict,
        moderator=found.moderator,
        is_undone=found.is_undone,
        cases=list(found.cases),
        pairs=list(found.pairs),
        seen=found.seen,
    )


# Complaints.


def list_complaints(db: sqlite3.Connection, first: int, limit: int, *, closed: bool) -> messages.ComplaintsAnswer:
    """A part of the open complaints, or of the closed ones, from position `first`."""
    listed = ledger_complaints.list_complaints(db, closed=closed, limit=limit, offset=first)
    return messages.ComplaintsAnswer(
        total=ledger_complaints.count(db, closed=closed),
        complaints=[messages.Complaint(**_describe_complaint(found)) for found in listed],
    )


def show_complaint(db: sqlite3.Connection, found: Complaint) -> messages.ShownComplaint:
    """A complaint with its log, and the text of the original."""
    text = ledger_complaints.read_original_text(db, found.number)
    return messages.ShownComplaint(**_describe_complaint(found), original_text=text)


def _describe_complaint(found: Complaint) -> dict[str, Any]:
    times = {name: format_time(getattr(found, name)) for name in ("received_at", "due_at", "closed_at")}
    members = {
        "story_id": found.shown,
        "original_id": found.original_shown,
        "has_original_text": found.has_text,
        "log": [step._asdict() | {"at": format_time(step.at)} for step in found.log],
    }
    return asdict(found) | times | members


# Hidden authors.


def list_hidden(db: sqlite3.Connection) -> messages.HiddenAnswer:
    """The authors whose undecided stories the platform is asked to hide, the latest first."""
    return messages.HiddenAnswer(
        authors=[
            messages.HiddenAuthor(
                author_id=row["author"],
                note=row["note"],
                moderator=row["moderator"],
                hidden_at=format_time(row["hidden_at"]),
                stories=list(names.read_shown_ids(db, authors.list_undecided(db, row["author"])).values()),
            )
            for row in authors.list_hidden(db)
        ]
    )


# Translated and retold pairs.


def list_meaning_pairs(db: sqlite3.Connection, queue: MeaningQueue, first: int, limit: int) -> messages.MeaningAnswer:
    """A part of the queue of translated and retold pairs, from position `first`."""
    rows = list(meaning_flags.select(db, queue.selection, limit=limit, offset=first))
    total = meaning_flags.count(db, queue.selection)
    return messages.MeaningAnswer(total=total, pairs=[_describe_meaning_pair(db, row) for row in rows])


def read_meaning_pair(db: sqlite3.Connection, pair: Pair) -> messages.MeaningPair | None:
    """The translated or retold pair of two stories, the lower id first; None if they are none."""
    row = meaning_flags.read_pair(db, *pair)
    return None if row is None else _describe_meaning_pair(db, row)


def _describe_meaning_pair(db: sqlite3.Connection, row: Row) -> messages.MeaningPair:
    """The columns of the export, and `seen`, which a verdict asks for."""
    chunks = [dict(zip(("a", "b", "cosine"), chunk_pair, strict=True)) for chunk_pair in json.loads(row["chunks"])]
    [shown] = names.show_ids(db, [convert_meaning_row(row)], MEANING_PAIRS.story_ids)
    return messages.MeaningPair(
        **shown | {"chunks": chunks, "seen": str(meaning_flags.identify_state(db, row["a"], row["b"]))}
    )
