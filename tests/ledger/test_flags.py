"""Laws: a selection equals filtering all flags in Python; the cluster of a story is one of all clusters."""

import sqlite3
from collections.abc import Callable

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Struct
from msgspec.structs import replace
from neardup.core.languages import LANGUAGES
from neardup.core.verify.clusters import find_clusters as clusters_of
from neardup.core.verify.tiers import EXACT, NEAR, PARTIAL, SIMILAR, TRANSLITERATED, find_tier, list_kinds
from neardup.ledger import flags
from neardup.ledger.flags import JOINING, Selection, read_cluster
from neardup.ledger.story_rows import pack_id
from neardup.records import DECIDING, Fingerprinted, Kind, Language, Signals, Skip, Skipped, Story

from tests.support.builders import commit, fingerprint_of, ledger_in_memory, verify_pending
from tests.support.languages import HINDI, NUMBER_OF, ODIA, TAMIL
from tests.support.sampling import count_examples

STORIES = 8
AUTHORS = (None, "7", "07", "asha")
STATUSES = ("open", "withdrawn", *(verdict.value for verdict in DECIDING))
shares = st.sampled_from([0.25, 0.5, 0.75, 1.0])
scores = st.none() | st.tuples(shares, shares, shares)
ids = st.integers(1, STORIES)


class Flag(Struct, frozen=True):
    """A row as the test thinks of it."""

    a: int
    b: int
    language: Language
    kind: Kind
    status: str
    hamming: int
    scores: tuple[float, float, float] | None
    flagged_at: int
    exported: bool
    joins: bool
    similarity: float

    @property
    def badness(self) -> tuple[float, ...]:
        jaccard, first, second = self.scores or (0.0, 0.0, 0.0)
        most = max(first, second)
        alike = {EXACT: 1.0, NEAR: jaccard, SIMILAR: jaccard, PARTIAL: most, TRANSLITERATED: most}.get(self.kind, 0.0)
        return list(list_kinds()).index(self.kind), self.hamming * (self.kind == NEAR), -alike, self.a, self.b


made = st.builds(
    Flag,
    ids,
    ids,
    st.sampled_from([HINDI, ODIA]),
    st.sampled_from(list_kinds()),
    st.sampled_from(STATUSES),
    st.integers(0, 7),
    scores,
    st.integers(1, 5),
    st.booleans(),
    st.booleans(),
    shares,
)
many = st.lists(made.filter(lambda flag: flag.a < flag.b), max_size=12, unique_by=lambda flag: (flag.a, flag.b))
maybe_id = st.none() | ids
times = st.none() | st.integers(1, 6)
selections = st.builds(
    Selection,
    languages=st.lists(st.sampled_from([HINDI, ODIA, TAMIL]), max_size=2).map(tuple),
    kinds=st.lists(st.sampled_from(list_kinds()), max_size=2).map(tuple),
    statuses=st.just(("open",)) | st.lists(st.sampled_from(STATUSES), max_size=3).map(tuple),
    similarity=st.none() | shares,
    author=st.none() | st.sampled_from(AUTHORS[1:]),
    story=maybe_id,
    cluster=maybe_id,
    since=times,
    until=times,
    only_new=st.booleans(),
)


def ledger(rows: list[Flag], authors: dict[int, str | None]) -> sqlite3.Connection:
    db = ledger_in_memory()
    listed = [Story(n, HINDI, author_id=authors.get(n)) for n in range(1, STORIES + 1)]
    commit(db, *(Fingerprinted(story, fingerprint_of(story.id.to_bytes(16)), None) for story in listed))
    for row in rows:
        db.execute(
            "INSERT INTO flags (severity, strength, joins_clusters, similarity, a, b, language, kind, status, hamming,"
            " jaccard, containment_a, containment_b, flagged_at, exported_at, author_a, author_b, fingerprint_version)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'v')",
            (
                find_tier(row.kind).severity,
                find_tier(row.kind).strength(Signals(row.hamming, False, *(row.scores or ()))),
                row.joins,
                row.similarity,
                *(row.a, row.b, NUMBER_OF[row.language], row.kind, row.status, row.hamming),
                *(row.scores or (None, None, None)),
                *(row.flagged_at, 1 if row.exported else None),
                *(pack_id(authors.get(story_id)) for story_id in (row.a, row.b)),
            ),
        )
    return db


def joins(flag: Flag) -> bool:
    return flag.joins and flag.status in JOINING


def members(rows: list[Flag], story: int) -> set[int]:
    found = {story}
    while grown := {n for row in rows if joins(row) and {row.a, row.b} & found for n in (row.a, row.b)} - found:
        found |= grown
    return found


def filters(rows: list[Flag], authors: dict[int, str | None], wanted: Selection) -> list[Callable[[Flag], bool]]:
    """What must hold of a flag, each as one would say it."""
    return [
        lambda flag: not wanted.languages or flag.language in wanted.languages,
        lambda flag: not wanted.kinds or flag.kind in wanted.kinds,
        lambda flag: not wanted.statuses or flag.status in wanted.statuses,
        lambda flag: wanted.similarity is None or flag.similarity >= wanted.similarity,
        lambda flag: wanted.author is None or wanted.author in (authors.get(flag.a), authors.get(flag.b)),
        lambda flag: wanted.story is None or wanted.story in (flag.a, flag.b),
        lambda flag: wanted.cluster is None or {flag.a, flag.b} <= members(rows, wanted.cluster),
        lambda flag: wanted.since is None or flag.flagged_at >= wanted.since,
        lambda flag: wanted.until is None or flag.flagged_at < wanted.until,
        lambda flag: not (wanted.only_new and flag.exported),
    ]


@settings(deadline=None, max_examples=count_examples(300))
@given(many, st.dictionaries(ids, st.sampled_from(AUTHORS)), selections, st.integers(0, 4), st.integers(0, 4))
def test_selection_equals_filtering_all_flags_in_queue_order(
    rows: list[Flag], authors: dict[int, str | None], wanted: Selection, limit: int, offset: int
) -> None:
    db = ledger(rows, authors)
    must = filters(rows, authors, wanted)
    want = sorted((flag for flag in rows if all(holds(flag) for holds in must)), key=lambda flag: flag.badness)
    found = [(row["matched_id"], row["story_id"], row["language"], row["kind"]) for row in flags.select(db, wanted)]
    assert found == [(flag.a, flag.b, flag.language, flag.kind) for flag in want]
    assert flags.count(db, wanted) == len(want)
    page = [row["story_id"] for row in flags.select(db, wanted, limit=limit, offset=offset)]
    assert page == [flag.b for flag in want[offset : offset + limit]]
    db.close()


@settings(deadline=None)
@given(many, ids)
def test_cluster_of_a_story_is_one_of_all_clusters(rows: list[Flag], story: int) -> None:
    db = ledger(rows, {})
    joining = [flag for flag in rows if joins(flag)]
    all_of_them = clusters_of([(flag.a, flag.b, flag.similarity) for flag in joining], {})
    assert flags.find_clusters(db) == all_of_them
    expected = next((flag for flag in all_of_them if story in flag.stories), None)
    found, edges = flags.find_cluster_around(db, story) or (None, [])
    assert found == expected
    assert sorted(edges) == sorted(
        (flag.a, flag.b, flag.similarity) for flag in joining if expected and flag.a in expected.stories
    )
    assert read_cluster(db, story) == members(rows, story)
    cluster = members(rows, story)
    inside = sorted(
        (flag for flag in rows if flag.status in JOINING and {flag.a, flag.b} <= cluster), key=lambda flag: flag.badness
    )
    assert [
        (row["matched_id"], row["story_id"])
        for row in flags.select(db, Selection(statuses=JOINING, cluster=story, same_author=True))
    ] == [(flag.a, flag.b) for flag in inside]
    db.close()


@settings(deadline=None)
@given(many, ids)
def test_flag_of_a_removed_story_is_not_shown(rows: list[Flag], gone: int) -> None:
    db = ledger([replace(row, status="open") for row in rows], {})
    commit(db, Skipped(Story(gone, HINDI), Skip.EMPTY))
    everything = Selection(statuses=())
    left = [row for row in rows if gone not in (row.a, row.b)]
    assert flags.count(db, everything) == len(left) == len(list(flags.select(db, everything)))
    db.close()


def test_languages_are_stored_by_number() -> None:
    numbers = [NUMBER_OF[language] for language in LANGUAGES]
    assert numbers == list(range(len(LANGUAGES))), "the ledger's flags hold these"


def test_story_is_found_by_its_new_author() -> None:
    db = ledger_in_memory()
    first = Fingerprinted(Story(1, HINDI, author_id="7"), fingerprint_of(b"t" * 16), None)
    second = Fingerprinted(Story(2, HINDI, author_id="8"), fingerprint_of(b"t" * 16), None)
    commit(db, first, second, pairs={(1, 2)})
    verify_pending(db)
    assert [flags.count(db, Selection(author=author)) for author in ("7", "8", "asha")] == [1, 1, 0]
    commit(db, Skipped(replace(second.story, author_id="asha"), Skip.UNCHANGED))
    assert [flags.count(db, Selection(author=author)) for author in ("7", "8", "asha")] == [1, 0, 1]
