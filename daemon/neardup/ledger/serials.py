"""Serials: the stories of one author that follow each other, and which chapters of one are chapters of another.

The chapters of a serial are the stories of an author that the listing gives one `series_id`; without one, those whose
titles are a stem with a number (`core.serials`).  So an author and the id or the stem name a serial; where
the stem is empty, the word for chapter, or else NAMELESS, stands for it in the name.  The ledger keeps the names of
those that flagged stories are of, and has the permissions of a serial follow them.  The place of a chapter is the
number in its title.  Where a series has chapters without a number, or two with the same, the order of publication
counts.

Only chapters by two authors that share text are looked at: flags, and near misses that copy NEAR_MISS_WORDS.  Where
they follow each other in both serials (`core.serials`), the two serials match.  All flags between them are then
one case, and the near misses among the aligned pairs are verified once more, which makes them flags of the kind
`serial`.  Those that are no longer aligned are verified once more as well, and become near misses again.

Triggers mark the pairs that change.  `refresh` aligns the serials that these are of, and no others, at the end of a
run.  What it finds follows from the stories, the flags and the near misses, whatever the order in which they came.
"""

import json
import sqlite3
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import xxhash
from msgspec import Struct

from neardup.core.serials import Dot, Ranges, align_chapters, find_ranges, parse_chapter_title
from neardup.core.verify.scores import NEAR_MISS_WORDS
from neardup.core.verify.tiers import SERIAL
from neardup.ledger import AMONG, Row, candidates, dump_list, select_named_rows, similarities, transaction
from neardup.ledger.runs import get, put

PAIRS_AT_ONCE = 5_000  # bounds the memory, and how long others wait for the ledger
UNDECIDED = "+status IN ('open', 'permitted')"  # the unary + keeps SQLite from reading all of them by the status
THROUGH = "serials_through"  # key: up to which number of a story the chapters of known series were noted
COPIED = "coalesce({0}.signals ->> 'copied_words', 0)"
DUE = "WITH due (a, b) AS MATERIALIZED (SELECT value ->> 0, value ->> 1 FROM json_each(?))"
# The pairs of chapters that may be dots, of those in `due`, with what is known of the two stories.
SHARING = f"""SELECT due.a, due.b, x.author_id, x.series_id, coalesce(x.title, x.page_title),
        y.author_id, y.series_id, coalesce(y.title, y.page_title)
    FROM due CROSS JOIN stories x ON x.id = due.a CROSS JOIN stories y ON y.id = due.b
    WHERE x.author_id <> y.author_id AND (
        EXISTS (SELECT 1 FROM flags f WHERE f.a = due.a AND f.b = due.b AND f.status <> 'withdrawn'
            AND (f.kind <> '{SERIAL}' OR {COPIED.format("f")} >= {NEAR_MISS_WORDS}))
        OR EXISTS (SELECT 1 FROM candidates c WHERE c.a = due.a AND c.b = due.b AND c.hamming IS NOT NULL
            AND {COPIED.format("c")} >= {NEAR_MISS_WORDS}))"""
# The dots of two serials, each once whichever of its stories has the lower id.
DOTS = f"""SELECT p.*, x.author_id AS author_a, x.series_id AS series_a, coalesce(x.title, x.page_title) AS title_a,
        y.author_id AS author_b, y.series_id AS series_b, coalesce(y.title, y.page_title) AS title_b,
        f.flag_id, f.kind, f.status, c.a IS NOT NULL AS is_candidate, c.verified_at,
        iif(f.flag_id IS NULL, {COPIED.format("c")}, {COPIED.format("f")}) AS words
    FROM chapter_pairs p CROSS JOIN stories x ON x.id = p.a CROSS JOIN stories y ON y.id = p.b
    LEFT JOIN flags f ON f.a = p.a AND f.b = p.b AND f.status <> 'withdrawn'
    LEFT JOIN candidates c ON c.a = p.a AND c.b = p.b
    WHERE """

# The dots of a match, with which of the two stories is the earlier one.
MATCHED = f"""SELECT p.*, f.kind, f.status, (x.sort_time, x.id) < (y.sort_time, y.id) AS is_a_earlier,
        iif(f.flag_id IS NULL, {COPIED.format("c")}, {COPIED.format("f")}) AS words
    FROM chapter_pairs p JOIN stories x ON x.id = p.a JOIN stories y ON y.id = p.b
    LEFT JOIN flags f ON f.a = p.a AND f.b = p.b AND f.status <> 'withdrawn'
    LEFT JOIN candidates c ON c.a = p.a AND c.b = p.b
    WHERE match = ? AND place_a IS NOT NULL AND place_b IS NOT NULL ORDER BY p.a, p.b"""

SerialPair = tuple[int, int]  # the lower hash first


# Chapters.


class Described(NamedTuple):
    """What the listing says of a story that makes it a chapter."""

    author: int | str
    series: int | str | None
    title: str | None

    @property
    def name(self) -> str | None:
        """The name of its serial among those of its author; None for a story that is no chapter."""
        if self.series is not None:
            return str(self.series)
        parsed = parse_chapter_title(self.title or "")
        return None if parsed is None else parsed.serial

    @property
    def serial(self) -> int | None:
        """The hash that identifies its serial; None for a story that is no chapter."""
        if self.series is not None:
            return hash_parts("series", self.author, self.series)
        parsed = parse_chapter_title(self.title or "")
        return None if parsed is None else hash_parts("titles", self.author, parsed.stem)

    @property
    def number(self) -> int | None:
        parsed = parse_chapter_title(self.title or "")
        return None if parsed is None else parsed.number


def hash_parts(*parts: object) -> int:
    """A number of 63 bits that stands for these values."""
    return xxhash.xxh3_64_intdigest("\0".join(map(str, parts)).encode("utf-8", "replace")) >> 1


def read_chapters(db: sqlite3.Connection, story_ids: Iterable[int]) -> dict[int, Described]:
    """What the listing says of those of these stories whose authors are known, by id."""
    rows = db.execute(
        "SELECT id, author_id, series_id, coalesce(title, page_title) FROM stories"
        f" WHERE id {AMONG} AND author_id IS NOT NULL",
        (dump_list(story_ids),),
    )
    return {story_id: Described(*about) for story_id, *about in rows}


def put_chapters(db: sqlite3.Connection, story_ids: Iterable[int]) -> None:
    """Record which serials these stories are chapters of, in the caller's transaction, which refreshes similarities."""
    about, ids = read_chapters(db, wanted := set(story_ids)), dump_list(wanted)
    now = {story_id: name for story_id, described in about.items() if (name := described.name) is not None}
    known = dict(db.execute(f"SELECT story_id, serial FROM chapters WHERE story_id {AMONG}", (ids,)))
    if moved := [(story_id, now.get(story_id)) for story_id in wanted if known.get(story_id) != now.get(story_id)]:
        db.executemany("DELETE FROM chapters WHERE story_id = ?", ((story_id,) for story_id, _ in moved))
        db.executemany("INSERT INTO chapters VALUES (?, ?)", (row for row in moved if row[1] is not None))
        if db.execute("SELECT EXISTS (SELECT 1 FROM permissions WHERE serial IS NOT NULL)").fetchone()[0]:
            db.executemany(
                f"UPDATE flags SET status = status WHERE (a = ?1 OR b = ?1) AND {UNDECIDED}",
                ((story_id,) for story_id, _ in moved),
            )


# Matches of serials.


def refresh(db: sqlite3.Connection) -> int:
    """Align the serials whose pairs of chapters have changed, in transactions of about PAIRS_AT_ONCE pairs.

    Returns how many pairs are to be verified once more.
    """
    _note_new_chapters(db)
    requested = 0
    while db.execute("SELECT EXISTS (SELECT 1 FROM due_pairs)").fetchone()[0]:
        with transaction(db):
            requested += _refresh_some(db)
    return requested


def note_series(db: sqlite3.Connection, series: Iterable[tuple[int | str, int | str]]) -> None:
    """Have the chapters of series, given as (author, series), aligned again, within the caller's transaction."""
    series = list(series)
    for side in "ab":
        db.executemany(
            f"INSERT INTO due_pairs SELECT p.a, p.b FROM stories s CROSS JOIN chapter_pairs p ON p.{side} = s.id"
            " WHERE s.author_id = ? AND s.series_id = ? ON CONFLICT DO NOTHING",
            series,
        )


def note_gone(db: sqlite3.Connection, story_ids: Iterable[int]) -> None:
    """Record that stories are about to change or to leave their series, within the caller's transaction."""
    query = f"SELECT author_id, series_id FROM stories WHERE id {AMONG} AND series_id IS NOT NULL"
    note_series(db, db.execute(query, (dump_list(story_ids),)))


def _note_new_chapters(db: sqlite3.Connection) -> None:
    """Record which series have new chapters since the last call."""
    with transaction(db):
        [last] = db.execute("SELECT coalesce(max(number), 0) FROM stories").fetchone()
        if db.execute("SELECT EXISTS (SELECT 1 FROM chapter_pairs)").fetchone()[0]:
            query = "SELECT DISTINCT author_id, series_id FROM stories WHERE number > ? AND +series_id IS NOT NULL"
            note_series(db, db.execute(query, (int(get(db, THROUGH) or 0),)))
        put(db, THROUGH, str(last))


def _refresh_some(db: sqlite3.Connection) -> int:
    due = dump_list(db.execute("SELECT a, b FROM due_pairs ORDER BY a, b LIMIT ?", (PAIRS_AT_ONCE,)))
    put_chapters(db, (story_id for pair in json.loads(due) for story_id in pair))
    touched = _put_pairs(db, due)
    requested = [*_list_strays(db, due), *(pair for serials in sorted(touched) for pair in _align(db, serials))]
    candidates.request_verification(db, requested)
    db.execute("DELETE FROM due_pairs WHERE (a, b) IN (SELECT value ->> 0, value ->> 1 FROM json_each(?))", (due,))
    similarities.refresh(db)
    return len(requested)


def _put_pairs(db: sqlite3.Connection, due: str) -> set[SerialPair]:
    """Write those of the due pairs that are pairs of chapters, and remove the others.

    Returns the pairs of serials that either were of or are of.
    """
    known = {
        (a, b): (serial_a, serial_b)
        for a, b, serial_a, serial_b in db.execute(
            f"{DUE} SELECT p.a, p.b, serial_a, serial_b FROM due CROSS JOIN chapter_pairs p USING (a, b)", (due,)
        )
    }
    found = dict[tuple[int, int], SerialPair]()
    for a, b, *about in db.execute(f"{DUE} {SHARING}", (due,)):
        serials = Described(*about[:3]).serial, Described(*about[3:]).serial
        if serials[0] is not None and serials[1] is not None:
            found[a, b] = serials[0], serials[1]
    moved = [pair for pair, serials in known.items() if found.get(pair) != serials]
    db.executemany("DELETE FROM chapter_pairs WHERE a = ? AND b = ?", moved)
    _request_cases(db, moved)
    new = [(*pair, *serials) for pair, serials in found.items() if known.get(pair) != serials]
    db.executemany("INSERT INTO chapter_pairs (a, b, serial_a, serial_b) VALUES (?, ?, ?, ?)", new)
    return {(min(serials), max(serials)) for serials in (*known.values(), *found.values())}


def _list_strays(db: sqlite3.Connection, due: str) -> list[tuple[int, int]]:
    """Those of the due pairs that are flagged as chapters, and are none any more; pending ones are left out."""
    rows = db.execute(
        f"{DUE} SELECT f.a, f.b FROM due CROSS JOIN flags f USING (a, b) WHERE f.kind = ? AND f.status IN"
        " ('open', 'permitted') AND NOT EXISTS (SELECT 1 FROM candidates c WHERE c.a = f.a AND c.b = f.b)"
        " AND NOT EXISTS (SELECT 1 FROM chapter_pairs p WHERE p.a = f.a AND p.b = f.b)",
        (due, SERIAL),
    )
    return rows.fetchall()


def _align(db: sqlite3.Connection, serials: SerialPair) -> list[tuple[int, int]]:
    """Align two serials; returns the pairs that are to be verified once more."""
    first, second = serials
    rows = _select_dots(db, serials)
    places = _map_places(db, rows)
    dots = dict[tuple[int, int], Dot]()
    for row in rows:
        place_a, place_b = (places.get(row[side]) for side in "ab")
        if place_a is not None and place_b is not None:
            both = (place_a, place_b) if row["serial_a"] == first else (place_b, place_a)
            dots[row["a"], row["b"]] = Dot(*both, row["words"])
    aligned = {place for chain in align_chapters(list(dots.values())) for place in chain}
    match = hash_parts("match", first, second) if aligned else None
    changed, requested = list[tuple[object, ...]](), list[tuple[int, int]]()
    for row in rows:
        pair = row["a"], row["b"]
        is_aligned = pair in dots and dots[pair][:2] in aligned
        new = match, *((places.get(row["a"]), places.get(row["b"])) if aligned else (None, None)), is_aligned
        if (row["match"], row["place_a"], row["place_b"], row["is_aligned"]) != new:
            changed.append((*new, *pair))
        if _is_to_be_verified(row, is_aligned=is_aligned):
            requested.append(pair)
    db.executemany(
        "UPDATE chapter_pairs SET match = ?, place_a = ?, place_b = ?, is_aligned = ? WHERE a = ? AND b = ?", changed
    )
    _request_cases(db, [row[-2:] for row in changed])
    return requested


def _is_to_be_verified(row: Row, *, is_aligned: bool) -> bool:
    """Whether a pair is a near miss and should be a flag, or the other way round, and is not pending yet."""
    if row["flag_id"] is None:
        return is_aligned and row["verified_at"] is not None
    is_undecided = row["status"] in {"open", "permitted"}
    return not is_aligned and row["kind"] == SERIAL and is_undecided and not row["is_candidate"]


def _select_dots(db: sqlite3.Connection, serials: SerialPair) -> list[Row]:
    both_ways = (*serials, *serials[::-1])
    return select_named_rows(
        db,
        f"{DOTS} (p.serial_a, p.serial_b) = (?1, ?2) UNION ALL {DOTS} (p.serial_a, p.serial_b) = (?3, ?4)",
        both_ways,
    ).fetchall()


def _map_places(db: sqlite3.Connection, rows: Sequence[Row]) -> dict[int, int]:
    """The place of each chapter among these pairs in its serial, by id."""
    stories = {
        row[side]: Described(*(row[f"{name}_{side}"] for name in ("author", "series", "title")))
        for row in rows
        for side in "ab"
    }
    places = {story_id: number for story_id, about in stories.items() if (number := about.number) is not None}
    for author, series in {(about.author, about.series) for about in stories.values() if about.series is not None}:
        places |= _number_chapters(db, author, series)
    return places


def _number_chapters(db: sqlite3.Connection, author: int | str, series: int | str) -> dict[int, int]:
    """The place of each chapter of a series: the number in its title or, unless all have one of their own, its rank."""
    rows = db.execute(
        "SELECT id, coalesce(title, page_title) FROM stories WHERE series_id = ? AND author_id = ?"
        " ORDER BY sort_time, id",
        (series, author),
    ).fetchall()
    numbers = [Described(author, None, title).number for _, title in rows]
    if None in numbers or len(set(numbers)) < len(numbers):
        return {story_id: place for place, (story_id, _) in enumerate(rows, 1)}
    return {story_id: number for (story_id, _), number in zip(rows, numbers, strict=True) if number is not None}


def _request_cases(db: sqlite3.Connection, pairs: Iterable[Sequence[object]]) -> None:
    """Have the cases of the flags of these pairs brought up to date."""
    db.executemany(
        "INSERT INTO due_flags SELECT flag_id FROM flags WHERE a = ? AND b = ? ON CONFLICT DO NOTHING", pairs
    )


# What moderators see.


class ChapterPair(Struct, frozen=True):
    """A dot: the places of the two chapters, their stories, and their flag, which a near miss has not."""

    source: int
    copy: int
    source_id: int
    copy_id: int
    is_aligned: bool
    kind: str | None
    status: str | None


class SerialMatch(Struct, frozen=True):
    """Two serials that match: the stories of the first aligned pair, their serials' names, and the dots.

    The stories are rows of the view `described`, and the first pair is that by the place in the source.  `ranges` say
    from where to where the serials are aligned, the best chain first.  The source is the serial whose chapter is the
    earlier one in more of the aligned pairs.
    """

    source: Row
    copy: Row
    source_serial: str | None
    copy_serial: str | None
    dots: tuple[ChapterPair, ...]
    ranges: tuple[Ranges, ...]

    @property
    def aligned(self) -> list[ChapterPair]:
        return [dot for dot in self.dots if dot.is_aligned]

    def as_dict(self) -> dict[str, Any]:
        """As JSON-serialisable values: the two works, and from which chapter to which they are aligned."""
        return {
            "source_author_id": self.source["author_id"],
            "source_serial": self.source_serial,
            "copy_author_id": self.copy["author_id"],
            "copy_serial": self.copy_serial,
            "aligned_pairs": len(self.aligned),
            "parts": [{"source": list(ranges.first), "copy": list(ranges.second)} for ranges in self.ranges],
        }


def read_match_of_pair(db: sqlite3.Connection, a: int, b: int) -> SerialMatch | None:
    """The match of the serials of two chapters; None where these are no chapters of serials that match."""
    query = "SELECT match FROM chapter_pairs WHERE a = ? AND b = ? AND match IS NOT NULL"
    return next(iter(_read_matches(db, db.execute(query, (min(a, b), max(a, b))).fetchall())), None)


def list_matches_of_case(db: sqlite3.Connection, case_id: int) -> list[SerialMatch]:
    """The matches of serials in a case, that with most aligned chapters first; the cases must be up to date."""
    rows = db.execute(
        "SELECT DISTINCT match FROM flags JOIN chapter_pairs USING (a, b) WHERE case_id = ? AND match IS NOT NULL",
        (case_id,),
    ).fetchall()
    return _read_matches(db, rows)


def list_matches_of_story(db: sqlite3.Connection, story_id: int) -> tuple[str | None, list[SerialMatch]]:
    """The name of the serial that a story is a chapter of, None for no chapter, and the matches of this serial."""
    about = read_chapters(db, [story_id]).get(story_id)
    if about is None or about.serial is None:
        return None, []
    sides = (f"SELECT match FROM chapter_pairs WHERE serial_{side} = ?1 AND match IS NOT NULL" for side in "ab")
    return about.name, _read_matches(db, db.execute(" UNION ".join(sides), (about.serial,)).fetchall())


def _read_matches(db: sqlite3.Connection, rows: Iterable[tuple[int]]) -> list[SerialMatch]:
    found = filter(None, (_read_match(db, match) for (match,) in rows))
    return sorted(found, key=lambda match: (-len(match.aligned), match.source["id"], match.copy["id"]))


def _read_match(db: sqlite3.Connection, match: int) -> SerialMatch | None:
    """A match; None where too few of its chapters are left, since it was found, to be aligned."""
    rows = select_named_rows(db, MATCHED, (match,)).fetchall()
    earlier = Counter(row["serial_a" if row["is_a_earlier"] else "serial_b"] for row in rows if row["is_aligned"])
    source = min(earlier, key=lambda serial: (-earlier[serial], serial), default=None)
    dots, aligned = list[ChapterPair](), list[Dot]()
    for row in rows:
        here, there = ("a", "b") if row["serial_a"] == source else ("b", "a")
        sides = row[f"place_{here}"], row[f"place_{there}"], row[here], row[there]
        dots.append(ChapterPair(*sides, bool(row["is_aligned"]), row["kind"], row["status"]))
        if row["is_aligned"]:
            aligned.append(Dot(*sides[:2], row["words"]))
    ranges = tuple(find_ranges(chain) for chain in align_chapters(aligned))
    if not ranges:
        return None
    dots.sort(key=lambda dot: (dot.source, dot.copy, dot.source_id, dot.copy_id))
    first = next(dot for dot in dots if dot.is_aligned)
    about = {
        row["id"]: row
        for row in select_named_rows(db, "SELECT * FROM described WHERE id IN (?, ?)", (first.source_id, first.copy_id))
    }
    of = {story_id: chapter.name for story_id, chapter in read_chapters(db, about).items()}
    names = of.get(first.source_id), of.get(first.copy_id)
    return SerialMatch(about[first.source_id], about[first.copy_id], *names, tuple(dots), ranges)
