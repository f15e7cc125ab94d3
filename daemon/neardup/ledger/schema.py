"""The ledger's tables.  A migration once released is never edited; a change appends another.

Statements end with a semicolon at the end of a line.  Times are milliseconds since 1970 in UTC.

A story's row is what most of the file is made of; neardup.ledger.compact_columns says how its columns are kept,
the view `described` gives them as they are.  What is read of many stories at once stands first.

A flag has its language while both its stories are there, and their authors, to be searched for; `worst`
sorts flags, the worst first.  A verdict stands while it is not undone and no later one of its pair
stands.  A kept pair would have been flagged, but for the verdict named.
"""

UNRELEASED = 2  # up to here the schemas of trial versions: there is no way from them

MIGRATIONS = (
    """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE languages (number INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, stories INTEGER NOT NULL DEFAULT 0);
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
    title TEXT
);
CREATE TABLE changes (
    seq INTEGER PRIMARY KEY,
    story_id INTEGER NOT NULL,
    old_language INTEGER, old_simhash BLOB,
    new_language INTEGER, new_simhash BLOB
);
CREATE TABLE candidates (
    a INTEGER NOT NULL,
    b INTEGER NOT NULL,
    hamming INTEGER,
    jaccard REAL,
    containment_a REAL,
    containment_b REAL,
    longest_run_words INTEGER,
    estimated INTEGER,
    judged_at INTEGER,
    PRIMARY KEY (a, b)
) WITHOUT ROWID;
CREATE INDEX candidates_b ON candidates (b);
CREATE INDEX candidates_pending ON candidates (a, b) WHERE judged_at IS NULL;
CREATE TABLE flags (
    flag_id INTEGER PRIMARY KEY AUTOINCREMENT,
    a INTEGER NOT NULL,
    b INTEGER NOT NULL,
    kind TEXT NOT NULL,
    hamming INTEGER NOT NULL,
    jaccard REAL,
    containment_a REAL,
    containment_b REAL,
    longest_run_words INTEGER,
    status TEXT NOT NULL DEFAULT 'open',
    flagged_at INTEGER NOT NULL,
    fingerprint_version TEXT NOT NULL,
    estimated INTEGER NOT NULL DEFAULT 0,
    exported_at INTEGER,
    UNIQUE (a, b)
);
CREATE INDEX flags_b ON flags (b);
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
CREATE VIEW described AS
    SELECT s.number, s.id, l.name AS language, text_hash, simhash, signature, words, shingles, path,
        iif(typeof(etag) = 'blob', '"' || lower(hex(etag)) || '"', etag) AS etag, CAST(author_id AS TEXT) AS author_id,
        title, published_at, updated_at
    FROM stories s JOIN languages l ON l.number = s.language;
CREATE VIEW pairs AS
    SELECT f.flag_id, f.kind, f.hamming, f.jaccard, f.longest_run_words, f.status, f.flagged_at,
        f.fingerprint_version, f.exported_at, f.estimated, s.language,
        s.id AS story_id, s.title AS story_title, s.author_id AS story_author_id, s.published_at AS story_published_at,
        m.id AS matched_id, m.title AS matched_title, m.author_id AS matched_author_id,
        m.published_at AS matched_published_at,
        iif(s.id = f.a, f.containment_a, f.containment_b) AS containment,
        iif(s.id = f.a, f.containment_b, f.containment_a) AS matched_containment
    FROM flags f
    JOIN described s ON s.id IN (f.a, f.b)
    JOIN described m ON m.id = iif(s.id = f.a, f.b, f.a)
    WHERE (coalesce(m.published_at, 9223372036854775807), m.id) < (coalesce(s.published_at, 9223372036854775807), s.id)
""",
    """
ALTER TABLE flags ADD COLUMN language INTEGER;
ALTER TABLE flags ADD COLUMN author_a;
ALTER TABLE flags ADD COLUMN author_b;
ALTER TABLE flags ADD COLUMN context INTEGER;
ALTER TABLE flags ADD COLUMN score REAL AS
    (max(coalesce(jaccard, 1 - hamming / 128.0), coalesce(containment_a, 0), coalesce(containment_b, 0)));
ALTER TABLE flags ADD COLUMN worst REAL AS
    (CASE kind WHEN 'exact' THEN 0 WHEN 'near' THEN 256 WHEN 'similar' THEN 512 ELSE 768 END
    + iif(kind = 'near', hamming, 0)
    - coalesce(iif(kind = 'partial', max(containment_a, containment_b), jaccard), 0) / 2);
UPDATE flags SET
    language = (SELECT s.language FROM stories s WHERE s.id = a AND EXISTS (SELECT 1 FROM stories m WHERE m.id = b)),
    author_a = (SELECT author_id FROM stories WHERE id = a),
    author_b = (SELECT author_id FROM stories WHERE id = b);
CREATE TRIGGER authors AFTER UPDATE OF author_id ON stories WHEN old.author_id IS NOT new.author_id BEGIN
    UPDATE flags SET author_a = new.author_id WHERE a = new.id; UPDATE flags
    SET author_b = new.author_id WHERE b = new.id; END;
CREATE INDEX flags_worst ON flags (status, worst, a, b, language, kind);
CREATE INDEX flags_context ON flags (context) WHERE context IS NOT NULL;
CREATE TABLE verdicts (
    verdict_id INTEGER PRIMARY KEY AUTOINCREMENT,
    a INTEGER NOT NULL,
    b INTEGER NOT NULL,
    language INTEGER,
    kind TEXT NOT NULL,
    verdict TEXT NOT NULL,
    note TEXT NOT NULL,
    moderator TEXT NOT NULL,
    judged_at INTEGER NOT NULL,
    decision INTEGER NOT NULL,
    undone_at INTEGER,
    undone_by TEXT
);
CREATE INDEX verdicts_pair ON verdicts (a, b, verdict_id);
CREATE INDEX verdicts_b ON verdicts (b);
CREATE INDEX verdicts_decision ON verdicts (decision);
CREATE VIEW standing AS
    SELECT * FROM verdicts v WHERE undone_at IS NULL AND NOT EXISTS
        (SELECT 1 FROM verdicts w
        WHERE w.a = v.a AND w.b = v.b AND w.verdict_id > v.verdict_id AND w.undone_at IS NULL);
CREATE TABLE kept (
    a INTEGER NOT NULL,
    b INTEGER NOT NULL,
    verdict_id INTEGER NOT NULL,
    kept_at INTEGER NOT NULL,
    PRIMARY KEY (a, b)
) WITHOUT ROWID;
CREATE INDEX kept_b ON kept (b);
CREATE INDEX kept_verdict ON kept (verdict_id);
DROP VIEW pairs;
CREATE VIEW pairs AS
    SELECT f.flag_id, f.kind, f.hamming, f.jaccard, f.longest_run_words, f.status, f.flagged_at,
        f.fingerprint_version, f.exported_at, f.estimated, f.worst, f.a, f.b, l.name AS language,
        s.id AS story_id, s.title AS story_title, CAST(s.author_id AS TEXT) AS story_author_id,
        s.published_at AS story_published_at,
        m.id AS matched_id, m.title AS matched_title, CAST(m.author_id AS TEXT) AS matched_author_id,
        m.published_at AS matched_published_at,
        iif(s.id = f.a, f.containment_a, f.containment_b) AS containment,
        iif(s.id = f.a, f.containment_b, f.containment_a) AS matched_containment,
        c.verdict AS context, c.note AS context_note, c.moderator AS context_by, c.judged_at AS context_at
    FROM flags f
    CROSS JOIN languages l ON l.number = f.language
    CROSS JOIN stories s ON s.id IN (f.a, f.b)
    CROSS JOIN stories m ON m.id = iif(s.id = f.a, f.b, f.a)
    LEFT JOIN verdicts c ON c.verdict_id = f.context
    WHERE (coalesce(m.published_at, 9223372036854775807), m.id) < (coalesce(s.published_at, 9223372036854775807), s.id)
""",
)
LATEST = UNRELEASED + len(MIGRATIONS)
