"""The ledger's tables.

There is one schema and no migration: no ledger of an earlier schema was ever released.  Times are milliseconds since
1970 in UTC.  Most of the file consists of rows of `stories`; neardup.ledger.compact_columns says how their columns
are stored, and the view `described` shows them unpacked.
"""

import sqlite3
import uuid

from neardup.errors import Fatal
from neardup.languages import LANGUAGES

VERSION = 6  # PRAGMA user_version; 1 to 5 were schemas of trial versions

SCHEMA = """
-- What the ledger records about itself: its id, the watermark, the checkpoint, the number of the last change, ...
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;

CREATE TABLE languages (number INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, stories INTEGER NOT NULL DEFAULT 0);

-- One row a story.  `number` is that of the change that wrote this version of it.  The columns that are read of many
-- stories at once come first.  `page_title` is what the page says of a story that was listed without a title.
CREATE TABLE stories (
    number INTEGER PRIMARY KEY,
    id INTEGER NOT NULL UNIQUE,
    language INTEGER NOT NULL,
    simhash BLOB NOT NULL,
    signature BLOB,
    text_hash BLOB NOT NULL,
    updated_at INTEGER,
    etag,
    words INTEGER NOT NULL,
    shingles INTEGER NOT NULL,
    published_at INTEGER,
    author_id,
    path TEXT,
    title TEXT,
    page_title TEXT
);

-- The outbox: the changes that `stories` does not show, which are removals and replaced versions.
CREATE TABLE changes (
    seq INTEGER PRIMARY KEY,
    story_id INTEGER NOT NULL,
    old_language INTEGER, old_simhash BLOB,
    new_language INTEGER, new_simhash BLOB
);

-- Pairs to be verified (no `verified_at`), and near misses with their signals.  `signals` is a JSON object of the
-- signals that have no column, NULL where there are none.
CREATE TABLE candidates (
    a INTEGER NOT NULL,
    b INTEGER NOT NULL,
    hamming INTEGER,
    jaccard REAL,
    containment_a REAL,
    containment_b REAL,
    longest_run_words INTEGER,
    estimated INTEGER,
    signals TEXT,
    verified_at INTEGER,
    PRIMARY KEY (a, b)
) WITHOUT ROWID;
CREATE INDEX candidates_b ON candidates (b);
CREATE INDEX candidates_pending ON candidates (a, b) WHERE verified_at IS NULL;

-- Verified pairs, a < b.  `severity`, `strength` and `joins_clusters` come from the table of tiers when the flag is
-- written; queues are ordered by the first two.  `language` is NULL once either story has been removed.
-- `context` is the latest verdict on another pair of either story.
CREATE TABLE flags (
    flag_id INTEGER PRIMARY KEY AUTOINCREMENT,
    a INTEGER NOT NULL,
    b INTEGER NOT NULL,
    kind TEXT NOT NULL,
    severity INTEGER NOT NULL,
    strength REAL NOT NULL,
    joins_clusters INTEGER NOT NULL,
    hamming INTEGER NOT NULL,
    jaccard REAL,
    containment_a REAL,
    containment_b REAL,
    longest_run_words INTEGER,
    estimated INTEGER NOT NULL DEFAULT 0,
    signals TEXT,
    score REAL AS (max(coalesce(jaccard, 1 - hamming / 128.0), coalesce(containment_a, 0), coalesce(containment_b, 0))),
    status TEXT NOT NULL DEFAULT 'open',
    flagged_at INTEGER NOT NULL,
    fingerprint_version TEXT NOT NULL,
    exported_at INTEGER,
    language INTEGER,
    author_a,
    author_b,
    context INTEGER,
    UNIQUE (a, b)
);
CREATE INDEX flags_b ON flags (b);
CREATE INDEX flags_queue ON flags (status, severity, strength DESC, a, b, language, kind);
CREATE INDEX flags_context ON flags (context) WHERE context IS NOT NULL;
CREATE TRIGGER authors AFTER UPDATE OF author_id ON stories WHEN old.author_id IS NOT new.author_id BEGIN
    UPDATE flags SET author_a = new.author_id WHERE a = new.id;
    UPDATE flags SET author_b = new.author_id WHERE b = new.id;
END;

-- What moderators decided.  Verdicts given at once share a `decision`, the id of the first of them.
CREATE TABLE verdicts (
    verdict_id INTEGER PRIMARY KEY AUTOINCREMENT,
    a INTEGER NOT NULL,
    b INTEGER NOT NULL,
    language INTEGER,
    kind TEXT NOT NULL,
    severity INTEGER NOT NULL,
    verdict TEXT NOT NULL,
    note TEXT NOT NULL,
    moderator TEXT NOT NULL,
    decided_at INTEGER NOT NULL,
    decision INTEGER NOT NULL,
    undone_at INTEGER,
    undone_by TEXT
);
CREATE INDEX verdicts_pair ON verdicts (a, b, verdict_id);
CREATE INDEX verdicts_b ON verdicts (b);
CREATE INDEX verdicts_decision ON verdicts (decision);

-- The verdicts that apply: of each pair the latest that was not undone.
CREATE VIEW active_verdicts AS
    SELECT * FROM verdicts v WHERE undone_at IS NULL AND NOT EXISTS
        (SELECT 1 FROM verdicts w
        WHERE w.a = v.a AND w.b = v.b AND w.verdict_id > v.verdict_id AND w.undone_at IS NULL);

-- Pairs that would be flagged, were it not for a verdict.
CREATE TABLE suppressed_pairs (
    a INTEGER NOT NULL,
    b INTEGER NOT NULL,
    verdict_id INTEGER NOT NULL,
    suppressed_at INTEGER NOT NULL,
    PRIMARY KEY (a, b)
) WITHOUT ROWID;
CREATE INDEX suppressed_pairs_b ON suppressed_pairs (b);
CREATE INDEX suppressed_pairs_verdict ON suppressed_pairs (verdict_id);

CREATE TABLE runs (
    run_id INTEGER PRIMARY KEY AUTOINCREMENT,
    command TEXT NOT NULL,
    started_at INTEGER NOT NULL,
    ended_at INTEGER,
    status TEXT NOT NULL DEFAULT 'running',
    error TEXT,
    counts TEXT NOT NULL DEFAULT '{}'
);

CREATE TABLE dead_letters (
    key TEXT PRIMARY KEY,
    reason TEXT NOT NULL,
    error TEXT NOT NULL,
    story TEXT,
    attempts INTEGER NOT NULL DEFAULT 1,
    first_at INTEGER NOT NULL,
    last_at INTEGER NOT NULL
) WITHOUT ROWID;

-- The stories, unpacked.
CREATE VIEW described AS
    SELECT s.number, s.id, l.name AS language, text_hash, simhash, signature, words, shingles, path,
        iif(typeof(etag) = 'blob', '"' || lower(hex(etag)) || '"', etag) AS etag, CAST(author_id AS TEXT) AS author_id,
        coalesce(title, page_title) AS title, published_at, updated_at
    FROM stories s JOIN languages l ON l.number = s.language;

-- The flags of pairs of which both stories are present, as an export shows them: `matched` is the earlier of the two by
-- publication, `story` the later.  If that is not known, because a time is missing or both are equal, the two have a
-- fixed order all the same, which means nothing: `export.pairs.earlier_of` says which case it is.
CREATE VIEW pairs AS
    SELECT f.flag_id, f.kind, f.severity, f.strength, f.hamming, f.jaccard, f.longest_run_words, f.signals, f.status,
        f.flagged_at, f.fingerprint_version, f.exported_at, f.estimated, f.a, f.b, l.name AS language,
        s.id AS story_id, coalesce(s.title, s.page_title) AS story_title, s.path AS story_path,
        CAST(s.author_id AS TEXT) AS story_author_id, s.published_at AS story_published_at,
        m.id AS matched_id, coalesce(m.title, m.page_title) AS matched_title, m.path AS matched_path,
        CAST(m.author_id AS TEXT) AS matched_author_id, m.published_at AS matched_published_at,
        iif(s.id = f.a, f.containment_a, f.containment_b) AS containment,
        iif(s.id = f.a, f.containment_b, f.containment_a) AS matched_containment,
        c.verdict AS context, c.note AS context_note, c.moderator AS context_by, c.decided_at AS context_at
    FROM flags f
    CROSS JOIN languages l ON l.number = f.language
    CROSS JOIN stories s ON s.id IN (f.a, f.b)
    CROSS JOIN stories m ON m.id = iif(s.id = f.a, f.b, f.a)
    LEFT JOIN verdicts c ON c.verdict_id = f.context
    WHERE (coalesce(m.published_at, 9223372036854775807), m.id) < (coalesce(s.published_at, 9223372036854775807), s.id);
"""


def version_of(db: sqlite3.Connection) -> int:
    """The schema version of an open file; 0 for an empty one."""
    return int(db.execute("PRAGMA user_version").fetchone()[0])


def create(db: sqlite3.Connection) -> None:
    """Make the tables in an empty file, within the caller's transaction."""
    statement = ""
    for line in SCHEMA.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            db.execute(statement)
            statement = ""
    db.executemany("INSERT INTO languages (number, name) VALUES (?, ?)", enumerate(LANGUAGES))
    db.execute("INSERT INTO meta VALUES ('ledger_id', ?)", (uuid.uuid4().hex,))
    db.execute(f"PRAGMA user_version = {VERSION}")


def refuse_other_versions(version: int, path: object) -> None:
    """Raises Fatal for a file of another schema; an empty one (0) passes."""
    if version > VERSION:
        raise Fatal(f"the ledger {path} was written by a newer neardup (schema {version}, this one knows {VERSION})")
    if 0 < version < VERSION:
        raise Fatal(f"the ledger {path} was written by a trial version: move it away and run `neardup backfill`")
