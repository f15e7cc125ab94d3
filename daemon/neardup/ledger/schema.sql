-- What the ledger records about itself: its id, the watermark, the checkpoint, the number of the last change, ...
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;

CREATE TABLE languages (number INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, stories INTEGER NOT NULL DEFAULT 0);

-- One row a story.  `number` is that of the change that wrote this version of it.  The columns that are read of many
-- stories at once come first.  `page_title` is what the page says of a story that was listed without a title.  `name`
-- is the id in the listing where that is no integer; `id` is then made from it.
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
    page_title TEXT,
    name TEXT
);

-- The outbox: the changes that `stories` does not show, which are removals and replaced versions.
CREATE TABLE changes (
    seq INTEGER PRIMARY KEY,
    story_id INTEGER NOT NULL,
    old_language INTEGER, old_simhash BLOB,
    new_language INTEGER, new_simhash BLOB
);

-- The outbox of the passage index: the passage hashes of the stories that no durable segment holds yet, as numbers of
-- 4 bytes, little-endian, ascending.
CREATE TABLE passage_hashes (number INTEGER PRIMARY KEY, hashes BLOB NOT NULL);

-- Passage hashes that so many stories hold that they nominate none.  `holders` is how many held it when that was last
-- counted, `example` a story that holds it, NULL once that story has changed or is gone.
CREATE TABLE common_passages (
    language INTEGER NOT NULL,
    hash INTEGER NOT NULL,
    holders INTEGER NOT NULL,
    example INTEGER,
    first_at INTEGER NOT NULL,
    PRIMARY KEY (language, hash)
) WITHOUT ROWID;
CREATE INDEX common_passages_example ON common_passages (example) WHERE example IS NOT NULL;

-- Stories that were forgotten on request.  No listing brings them back.
CREATE TABLE forgotten (story_id INTEGER PRIMARY KEY, forgotten_at INTEGER NOT NULL);

-- The submitted stories, by number, that the process with the lock is to look up once more, by these passage hashes.
CREATE TABLE unsettled (number INTEGER PRIMARY KEY, hashes BLOB NOT NULL);

-- Pairs to be verified (no `verified_at`), and near misses with their signals.  `signals` is a JSON object of the
-- signals that have no column, NULL where there are none.  `by_passages` marks a pair that passages alone nominated.
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
    by_passages INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (a, b)
) WITHOUT ROWID;
CREATE INDEX candidates_b ON candidates (b);
CREATE INDEX candidates_pending ON candidates (a, b) WHERE verified_at IS NULL;

-- Verified pairs, a < b.  `severity`, `strength` and `joins_clusters` come from the table of tiers when the flag is
-- written; queues are ordered by the first two.  `language` is NULL once either story has been removed.
-- `context` is the latest verdict on another pair of either story.  `by_passages` marks a flag that counts towards the
-- matches by passages; `same_author` one that `detection.same_author = "hide"` leaves out.  The spans are the copied
-- words of either side, packed by neardup.ledger.spans; NULL where there are none, as when a text was missing.
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
    by_passages INTEGER NOT NULL DEFAULT 0,
    own_text_expected INTEGER NOT NULL DEFAULT 0,
    same_author INTEGER NOT NULL DEFAULT 0,
    spans_a BLOB,
    spans_b BLOB,
    UNIQUE (a, b)
);
CREATE INDEX flags_b ON flags (b);
CREATE INDEX flags_queue ON flags (status, severity, strength DESC, a, b, language, kind, same_author);
CREATE INDEX flags_context ON flags (context) WHERE context IS NOT NULL;
CREATE TRIGGER authors AFTER UPDATE OF author_id ON stories WHEN old.author_id IS NOT new.author_id BEGIN
    UPDATE flags SET author_a = new.author_id WHERE a = new.id;
    UPDATE flags SET author_b = new.author_id WHERE b = new.id;
    UPDATE flags SET same_author = own_text_expected AND (author_a = author_b) IS TRUE WHERE a = new.id OR b = new.id;
END;

-- What moderators decided.  Verdicts given at once share a `decision`, the id of the first of them.
-- `story` is the story that was decided as a whole, NULL where pairs or clusters were.
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
    story INTEGER,
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

-- The stories, unpacked; each has a title, its path or its id if nothing else names it.
CREATE VIEW described AS
    SELECT s.number, s.id, l.name AS language, text_hash, simhash, signature, words, shingles, path,
        iif(typeof(etag) = 'blob', '"' || lower(hex(etag)) || '"', etag) AS etag, CAST(author_id AS TEXT) AS author_id,
        coalesce(title, page_title, path, CAST(id AS TEXT)) AS title, published_at, updated_at, s.name AS name
    FROM stories s JOIN languages l ON l.number = s.language;

-- The flags of pairs of which both stories are present, as an export shows them: `matched` is the earlier of the two by
-- publication, `story` the later.  If that is not known, because a time is missing or both are equal, the two have a
-- fixed order all the same, which means nothing: `export.pairs.earlier_of` says which case it is.
CREATE VIEW pairs AS
    SELECT f.flag_id, f.kind, f.severity, f.strength, f.hamming, f.jaccard, f.longest_run_words, f.signals, f.status,
        f.flagged_at, f.fingerprint_version, f.exported_at, f.estimated, f.a, f.b, l.name AS language,
        s.id AS story_id, s.name AS story_name, s.path AS story_path,
        coalesce(s.title, s.page_title, s.path, CAST(s.id AS TEXT)) AS story_title,
        CAST(s.author_id AS TEXT) AS story_author_id, s.published_at AS story_published_at,
        m.id AS matched_id, m.name AS matched_name, m.path AS matched_path,
        coalesce(m.title, m.page_title, m.path, CAST(m.id AS TEXT)) AS matched_title,
        CAST(m.author_id AS TEXT) AS matched_author_id, m.published_at AS matched_published_at,
        iif(s.id = f.a, f.containment_a, f.containment_b) AS containment,
        iif(s.id = f.a, f.containment_b, f.containment_a) AS matched_containment,
        c.verdict AS context, c.note AS context_note, c.moderator AS context_by, c.decided_at AS context_at,
        CAST(f.signals ->> 'copied_words' AS INTEGER) AS copied_words
    FROM flags f
    CROSS JOIN languages l ON l.number = f.language
    CROSS JOIN stories s ON s.id IN (f.a, f.b)
    CROSS JOIN stories m ON m.id = iif(s.id = f.a, f.b, f.a)
    LEFT JOIN verdicts c ON c.verdict_id = f.context
    WHERE (coalesce(m.published_at, 9223372036854775807), m.id) < (coalesce(s.published_at, 9223372036854775807), s.id);

-- The flags by which a story copies a source: an earlier story, in the order of `pairs`, by another author.  An author
-- who is not known counts as another.  Text that a verdict calls a repost or a template is not copied from a source.
CREATE VIEW sources AS
    SELECT s.id AS story_id, m.id AS source_id, f.flag_id, f.spans_a AS spans, f.spans_b AS source_spans
    FROM stories s CROSS JOIN flags f ON f.a = s.id CROSS JOIN stories m ON m.id = f.b
    WHERE +f.status IN ('open', 'plagiarism', 'quotation') AND (f.author_a = f.author_b) IS NOT TRUE
        AND (coalesce(m.published_at, 9223372036854775807), m.id) < (coalesce(s.published_at, 9223372036854775807), s.id)
    UNION ALL SELECT s.id, m.id, f.flag_id, f.spans_b, f.spans_a
    FROM stories s CROSS JOIN flags f ON f.b = s.id CROSS JOIN stories m ON m.id = f.a
    WHERE +f.status IN ('open', 'plagiarism', 'quotation') AND (f.author_a = f.author_b) IS NOT TRUE
        AND (coalesce(m.published_at, 9223372036854775807), m.id) < (coalesce(s.published_at, 9223372036854775807), s.id);

-- The stories that copy, with their similarity: the share of their words that stand in their sources.  The triggers
-- below mark the stories whose similarity may have changed; every transaction computes these again before it ends.
-- They do not insert OR IGNORE, because the conflict clause of the statement that fires a trigger overrides its own.
CREATE TABLE similarities (
    story_id INTEGER PRIMARY KEY,
    language INTEGER NOT NULL,
    words INTEGER NOT NULL,
    copied_words INTEGER NOT NULL,
    similarity REAL NOT NULL,
    sources INTEGER NOT NULL,
    top_source INTEGER NOT NULL,
    top_share REAL NOT NULL,
    kinds TEXT NOT NULL
);
CREATE INDEX similarities_queue ON similarities (similarity DESC, story_id, language);
CREATE TABLE due_similarities (story_id INTEGER PRIMARY KEY);
CREATE TRIGGER flag_inserted AFTER INSERT ON flags BEGIN
    INSERT INTO due_similarities VALUES (new.a), (new.b) ON CONFLICT DO NOTHING;
END;
CREATE TRIGGER flag_updated AFTER UPDATE OF kind, status, author_a, author_b, spans_a, spans_b ON flags
WHEN (old.kind, old.status, old.author_a, old.author_b, old.spans_a, old.spans_b)
    IS NOT (new.kind, new.status, new.author_a, new.author_b, new.spans_a, new.spans_b) BEGIN
    INSERT INTO due_similarities VALUES (new.a), (new.b) ON CONFLICT DO NOTHING;
END;
CREATE TRIGGER flag_deleted AFTER DELETE ON flags BEGIN
    INSERT INTO due_similarities VALUES (old.a), (old.b) ON CONFLICT DO NOTHING;
END;
CREATE TRIGGER publication AFTER UPDATE OF published_at ON stories WHEN old.published_at IS NOT new.published_at BEGIN
    INSERT INTO due_similarities
        SELECT b FROM flags WHERE a = new.id UNION SELECT a FROM flags WHERE b = new.id UNION SELECT new.id WHERE true
        ON CONFLICT DO NOTHING;
END;
