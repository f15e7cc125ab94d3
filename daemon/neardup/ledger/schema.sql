-- What the ledger records about itself: its id, the watermark, the checkpoint, the number of the last change, ...
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;

CREATE TABLE languages (number INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, stories INTEGER NOT NULL DEFAULT 0);

-- One row a story; a work of the reference has a negative id.  `number` is that of the change that wrote this version of it.  The columns that are read of many
-- stories at once come first.  `page_title` is what the page says of a story that was listed without a title.  `name`
-- is the id in the listing where that is no integer; `id` is then made from it.  `known_since` is when neardup first recorded the story, by its own clock.
-- `sort_time` orders stories by publication: works are before all others, and stories without a date behind them.
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
    name TEXT,
    known_since INTEGER NOT NULL,
    series_id,
    sort_time INTEGER AS (iif(id < 0, -9223372036854775807, coalesce(published_at, 9223372036854775807)))
);

CREATE INDEX stories_series ON stories (series_id, author_id) WHERE series_id IS NOT NULL;

-- The works of the reference, also those that have no fingerprint at present, by the catalogue that lists them.
CREATE TABLE works (story_id INTEGER PRIMARY KEY, catalogue TEXT NOT NULL, licence TEXT);
CREATE INDEX works_of_catalogue ON works (catalogue);

-- Since when stories were known that were removed, in case they come back.
CREATE TABLE known_before (story_id INTEGER PRIMARY KEY, known_since INTEGER NOT NULL);

-- What is unusual about stories; see `records.MarkReason`.  `marked_at` is since when the story has the mark.  `title` and
-- `name` are those of the listing for a story that was skipped, and may have no row in `stories`.
CREATE TABLE marks (
    story_id INTEGER NOT NULL,
    reason TEXT NOT NULL,
    detail TEXT NOT NULL,
    language INTEGER NOT NULL,
    marked_at INTEGER NOT NULL,
    author_id,
    title TEXT,
    name TEXT,
    PRIMARY KEY (story_id, reason)
) WITHOUT ROWID;
CREATE INDEX marks_author ON marks (author_id) WHERE author_id IS NOT NULL;

-- The outbox: the changes that `stories` does not show, which are removals and replaced versions.
CREATE TABLE changes (
    seq INTEGER PRIMARY KEY,
    story_id INTEGER NOT NULL,
    old_language INTEGER, old_simhash BLOB,
    new_language INTEGER, new_simhash BLOB
);

-- The outbox of the index of titles: the stories, by number, whose title changed though their text did not.
CREATE TABLE retitled (seq INTEGER PRIMARY KEY AUTOINCREMENT, number INTEGER NOT NULL UNIQUE);
CREATE TRIGGER title_changed AFTER UPDATE OF title ON stories WHEN old.title IS NOT new.title BEGIN
    DELETE FROM retitled WHERE number = new.number;
    INSERT INTO retitled (number) VALUES (new.number);
END;

-- The outbox of the passage index: the passage hashes of the stories that no durable segment holds yet, as numbers of
-- 4 bytes, little-endian, ascending.
CREATE TABLE passage_hashes (number INTEGER PRIMARY KEY, hashes BLOB NOT NULL);

-- Passage hashes that so many stories hold that they nominate none.  `holders` is how many held it when that was last
-- counted, `example` a story that holds it, NULL once that story has changed or is gone.  `due_at` is how many versions
-- must be gone from the ledger, see `passages.note_gone`, before so few may hold it that it is not common.
CREATE TABLE common_passages (
    language INTEGER NOT NULL,
    hash INTEGER NOT NULL,
    holders INTEGER NOT NULL,
    example INTEGER,
    first_at INTEGER NOT NULL,
    due_at INTEGER NOT NULL,
    PRIMARY KEY (language, hash)
) WITHOUT ROWID;
CREATE INDEX common_passages_due ON common_passages (due_at, hash);
CREATE INDEX common_passages_example ON common_passages (example) WHERE example IS NOT NULL;

-- The log of what was seen first, see neardup.ledger.first_seen.  `hash` is the SHA-256 of the text or, where the story was
-- forgotten and `story_id` is NULL, the hash of the entry.
CREATE TABLE first_seen (position INTEGER PRIMARY KEY, story_id INTEGER, seen_at INTEGER NOT NULL, hash BLOB NOT NULL);
CREATE INDEX first_seen_story ON first_seen (story_id) WHERE story_id IS NOT NULL;

-- The hash of each full block of entries of that log.
CREATE TABLE first_seen_blocks (block INTEGER PRIMARY KEY, hash BLOB NOT NULL);

-- Stories that were forgotten on request.  No listing brings them back.
CREATE TABLE forgotten (story_id INTEGER PRIMARY KEY, forgotten_at INTEGER NOT NULL);

-- Drafts, see neardup.ledger.submissions: `text` is compressed by zlib.
CREATE TABLE drafts (
    story_id INTEGER PRIMARY KEY,
    name TEXT,
    language INTEGER NOT NULL,
    author_id TEXT NOT NULL,
    title TEXT,
    text BLOB NOT NULL,
    words INTEGER NOT NULL,
    saved_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL
);
CREATE INDEX drafts_expires ON drafts (expires_at);

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

-- Stories, by number, that may have more than `detection.max_matches` matches, which are pairs with lower ids: `matches`
-- is how many were nominated at most, by whole texts or by passages.  `is_cut` says that some were left out, and `due`
-- how often it was asked since then to select them again.  Of such a story, a row of `candidates` without signals is a pair that has too
-- little in common to be a near miss, and yet is one of its matches.
CREATE TABLE crowded_stories (
    number INTEGER PRIMARY KEY,
    matches INTEGER NOT NULL,
    is_cut INTEGER NOT NULL DEFAULT 0,
    due INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX crowded_stories_due ON crowded_stories (number) WHERE due > 0;

-- Verified pairs, a < b.  `similarity` is that of the pair, see `core.verify.spans`.  `severity`, `strength` and `joins_clusters` come from the table of tiers when the flag is
-- written; queues are ordered by the first two.  `language` is NULL once either story has been removed.
-- `context` is the latest verdict on another pair of either story.  `by_passages` marks a flag that counts towards the
-- matches by passages; `same_author` one that `detection.same_author = "hide"` leaves out; `case_id` is kept by neardup.ledger.cases.  The spans are the copied
-- words of either side, packed by neardup.ledger.similarities; NULL where there are none, as when a text was missing.
-- Authors and dates are those of the stories.  `later_id` is the story published later, or the one that is not a work of
-- the reference, NULL where that is not known;
-- `copying_author` is its author, NULL where the other story is by the same one.
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
    similarity REAL NOT NULL,
    status TEXT NOT NULL DEFAULT 'open',
    flagged_at INTEGER NOT NULL,
    fingerprint_version TEXT NOT NULL,
    exported_at INTEGER,
    language INTEGER,
    author_a,
    author_b,
    published_a INTEGER,
    published_b INTEGER,
    later_id INTEGER AS (CASE WHEN a < 0 THEN b WHEN published_a > published_b THEN a WHEN published_a < published_b THEN b END),
    copying_author AS (CASE WHEN (author_a = author_b) IS NOT TRUE THEN
        CASE later_id WHEN a THEN author_a WHEN b THEN author_b END END),
    context INTEGER,
    by_passages INTEGER NOT NULL DEFAULT 0,
    reuse_expected INTEGER NOT NULL DEFAULT 0,
    same_author INTEGER NOT NULL DEFAULT 0,
    spans_a BLOB,
    spans_b BLOB,
    case_id INTEGER,
    UNIQUE (a, b)
);
CREATE INDEX flags_b ON flags (b);
CREATE INDEX flags_case ON flags (case_id) WHERE case_id IS NOT NULL;
CREATE INDEX flags_queue ON flags (status, severity, strength DESC, a, b, language, kind, same_author);
CREATE INDEX flags_time ON flags (status, same_author, flagged_at, language, kind);
CREATE INDEX flags_author_a ON flags (author_a) WHERE author_a IS NOT NULL;
CREATE INDEX flags_author_b ON flags (author_b) WHERE author_b IS NOT NULL;
CREATE INDEX flags_copying_author ON flags (copying_author, later_id, status) WHERE copying_author IS NOT NULL;
CREATE INDEX flags_context ON flags (context) WHERE context IS NOT NULL;
CREATE TRIGGER authors AFTER UPDATE OF author_id ON stories WHEN old.author_id IS NOT new.author_id BEGIN
    UPDATE flags SET author_a = new.author_id WHERE a = new.id;
    UPDATE flags SET author_b = new.author_id WHERE b = new.id;
    UPDATE flags SET same_author = reuse_expected AND (author_a = author_b) IS TRUE WHERE a = new.id OR b = new.id;
    UPDATE marks SET author_id = new.author_id WHERE story_id = new.id;
END;

-- What is remembered of texts that were removed while a verdict called them plagiarism, see neardup.ledger.removed_texts.
-- `verdict_id` is the latest such verdict; `sources` and `victims` are JSON arrays of the stories that were copied, and of
-- their authors.  `passages` are the passage hashes as in `passage_hashes`; `number` is that of the version until they have
-- been read from the segments, and NULL afterwards.
CREATE TABLE removed_texts (
    story_id INTEGER PRIMARY KEY,
    language INTEGER NOT NULL,
    text_hash BLOB NOT NULL,
    simhash BLOB NOT NULL,
    signature BLOB,
    words INTEGER NOT NULL,
    shingles INTEGER NOT NULL,
    author NOT NULL,
    published_at INTEGER,
    removed_at INTEGER NOT NULL,
    verdict_id INTEGER NOT NULL,
    sources TEXT NOT NULL,
    victims TEXT NOT NULL,
    number INTEGER,
    passages BLOB
);
CREATE INDEX removed_texts_author ON removed_texts (author);

-- The versions of stories, by number, whose texts match such a text.
CREATE TABLE returned_texts (
    number INTEGER NOT NULL,
    removed_id INTEGER NOT NULL,
    kind TEXT NOT NULL,
    similarity REAL NOT NULL,
    PRIMARY KEY (number, removed_id)
) WITHOUT ROWID;
CREATE INDEX returned_texts_removed ON returned_texts (removed_id);

-- Those that count: the verdict was not undone, the removed text did not come back under its own id, and the story is
-- neither one that was copied, nor by its author, nor known to be published before the removed one.
CREATE VIEW returned_stories AS
    SELECT s.id AS story_id, s.author_id AS author, r.story_id AS removed_id, r.author AS removed_author, r.removed_at,
        m.kind, m.similarity
    FROM returned_texts m CROSS JOIN stories s ON s.number = m.number CROSS JOIN removed_texts r ON r.story_id = m.removed_id
    WHERE s.id >= 0 AND (s.published_at < r.published_at) IS NOT TRUE
        AND NOT EXISTS (SELECT 1 FROM stories x WHERE x.id = r.story_id)
        AND NOT EXISTS (SELECT 1 FROM json_each(r.sources) WHERE value = s.id)
        AND NOT EXISTS (SELECT 1 FROM json_each(r.victims) WHERE value = s.author_id)
        AND (NOT EXISTS (SELECT 1 FROM verdicts v WHERE v.verdict_id = r.verdict_id) -- erased with its story
            OR EXISTS (SELECT 1 FROM active_verdicts v WHERE v.verdict_id = r.verdict_id AND v.verdict = 'plagiarism'));

-- Who may use whose text, see neardup.ledger.permissions.  `granted_by` is the author who permits it: all texts, or the one
-- that `story_id` names, or those of a `serial`; a `catalogue` permits its works.  `serial_stem` is the stem of titles that
-- begin with this serial's.  `granted_to` is an author, NULL for everyone.  `in_force` says whether
-- it applied when `permissions.refresh` last looked: at or after `since`, before `until`, and not revoked.
CREATE TABLE permissions (
    permission_id INTEGER PRIMARY KEY AUTOINCREMENT,
    granted_by,
    story_id INTEGER,
    catalogue TEXT,
    granted_to,
    licence TEXT,
    note TEXT NOT NULL,
    since INTEGER,
    until INTEGER,
    entered_by TEXT NOT NULL,
    entered_at INTEGER NOT NULL,
    revoked_by TEXT,
    revoked_at INTEGER,
    in_force INTEGER NOT NULL DEFAULT 0,
    serial TEXT,
    serial_stem TEXT
);
CREATE INDEX permissions_granted_by ON permissions (granted_by) WHERE granted_by IS NOT NULL;
CREATE INDEX permissions_story ON permissions (story_id) WHERE story_id IS NOT NULL;
CREATE INDEX permissions_catalogue ON permissions (catalogue) WHERE catalogue IS NOT NULL;
CREATE INDEX permissions_granted_to ON permissions (granted_to) WHERE granted_to IS NOT NULL;

-- The serials that flagged stories are chapters of: the id of the series, or the stem of the titles, see neardup.ledger.serials.
CREATE TABLE chapters (story_id INTEGER PRIMARY KEY, serial TEXT NOT NULL);

-- The flags of copies that a permission in force covers.  The later story is the copy; where the order is not known,
-- either may be.  The triggers keep the status of the flags that no verdict decides: 'permitted' for these, else 'open'.
CREATE VIEW permitted_flags AS
    SELECT f.flag_id, p.permission_id FROM flags f CROSS JOIN permissions p
    WHERE f.later_id IS NOT f.a AND p.in_force AND (p.granted_by = f.author_a AND coalesce(p.story_id, f.a) = f.a
                AND (p.serial IS NULL OR (SELECT serial FROM chapters c WHERE c.story_id = f.a) IN (p.serial, p.serial_stem))
            OR p.catalogue = (SELECT catalogue FROM works w WHERE w.story_id = f.a))
        AND coalesce(p.granted_to = f.author_b, p.granted_to IS NULL) AND (f.author_a = f.author_b) IS NOT TRUE
    UNION ALL SELECT f.flag_id, p.permission_id FROM flags f CROSS JOIN permissions p
    WHERE f.later_id IS NOT f.b AND p.in_force AND p.granted_by = f.author_b AND coalesce(p.story_id, f.b) = f.b
        AND (p.serial IS NULL OR (SELECT serial FROM chapters c WHERE c.story_id = f.b) IN (p.serial, p.serial_stem))
        AND coalesce(p.granted_to = f.author_a, p.granted_to IS NULL) AND (f.author_a = f.author_b) IS NOT TRUE;
CREATE TRIGGER permission_of_inserted_flag AFTER INSERT ON flags
WHEN new.status = 'open' AND EXISTS (SELECT 1 FROM permitted_flags WHERE flag_id = new.flag_id) BEGIN
    UPDATE flags SET status = 'permitted' WHERE flag_id = new.flag_id;
END;
CREATE TRIGGER permission_of_updated_flag AFTER UPDATE OF status, author_a, author_b, published_a, published_b ON flags
WHEN new.status IN ('open', 'permitted')
    AND (new.status = 'permitted') <> EXISTS (SELECT 1 FROM permitted_flags WHERE flag_id = new.flag_id) BEGIN
    UPDATE flags SET status = iif(status = 'open', 'permitted', 'open') WHERE flag_id = new.flag_id;
END;

-- Pairs of chapters of serials by two authors that share text, a < b, see neardup.ledger.serials.  `serial_a` and `serial_b`
-- are hashes that identify the serials.  `match` is set where the two serials match, and identifies the two; `place_a` and
-- `place_b` are then the numbers of the chapters in them, and `is_aligned` says whether the pair stands in a chain.
CREATE TABLE chapter_pairs (
    a INTEGER NOT NULL,
    b INTEGER NOT NULL,
    serial_a INTEGER NOT NULL,
    serial_b INTEGER NOT NULL,
    match INTEGER,
    place_a INTEGER,
    place_b INTEGER,
    is_aligned INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (a, b)
) WITHOUT ROWID;
CREATE INDEX chapter_pairs_b ON chapter_pairs (b);
CREATE INDEX chapter_pairs_serials ON chapter_pairs (serial_a, serial_b);
CREATE INDEX chapter_pairs_serial_b ON chapter_pairs (serial_b);
CREATE INDEX chapter_pairs_match ON chapter_pairs (match) WHERE match IS NOT NULL;

-- What `serials.refresh` is to read again: pairs by two authors that are verified, or are so no longer or otherwise, and
-- pairs of chapters of a series that has changed.
CREATE TABLE due_pairs (a INTEGER NOT NULL, b INTEGER NOT NULL, PRIMARY KEY (a, b)) WITHOUT ROWID;
CREATE TRIGGER chapters_of_inserted_flag AFTER INSERT ON flags WHEN new.author_a <> new.author_b BEGIN
    INSERT INTO due_pairs VALUES (new.a, new.b) ON CONFLICT DO NOTHING;
END;
CREATE TRIGGER chapters_of_updated_flag AFTER UPDATE OF status, kind, signals, author_a, author_b ON flags
WHEN (old.status = 'withdrawn', old.kind, old.signals, old.author_a, old.author_b)
    IS NOT (new.status = 'withdrawn', new.kind, new.signals, new.author_a, new.author_b) BEGIN
    INSERT INTO due_pairs VALUES (new.a, new.b) ON CONFLICT DO NOTHING;
END;
CREATE TRIGGER chapters_of_deleted_flag AFTER DELETE ON flags WHEN old.author_a <> old.author_b BEGIN
    INSERT INTO due_pairs VALUES (old.a, old.b) ON CONFLICT DO NOTHING;
END;
CREATE TRIGGER chapters_of_near_miss AFTER INSERT ON candidates WHEN new.hamming IS NOT NULL BEGIN
    INSERT INTO due_pairs VALUES (new.a, new.b) ON CONFLICT DO NOTHING;
END;
CREATE TRIGGER chapters_of_deleted_near_miss AFTER DELETE ON candidates WHEN old.hamming IS NOT NULL BEGIN
    INSERT INTO due_pairs VALUES (old.a, old.b) ON CONFLICT DO NOTHING;
END;
CREATE TRIGGER chapter_listed_otherwise AFTER UPDATE OF author_id, title, published_at, series_id ON stories
WHEN (old.author_id, old.title, old.published_at, old.series_id)
    IS NOT (new.author_id, new.title, new.published_at, new.series_id) BEGIN
    INSERT INTO due_pairs
        SELECT a, b FROM flags WHERE a = new.id UNION SELECT a, b FROM flags WHERE b = new.id
        UNION SELECT a, b FROM candidates WHERE a = new.id UNION SELECT a, b FROM candidates WHERE b = new.id
        UNION SELECT p.a, p.b FROM stories s CROSS JOIN chapter_pairs p ON p.a = s.id
            WHERE s.series_id IN (old.series_id, new.series_id) AND s.author_id IN (old.author_id, new.author_id)
        UNION SELECT p.a, p.b FROM stories s CROSS JOIN chapter_pairs p ON p.b = s.id
            WHERE s.series_id IN (old.series_id, new.series_id) AND s.author_id IN (old.author_id, new.author_id)
        ON CONFLICT DO NOTHING;
END;

-- Pairs of stories that say the same in other words, a < b; no flags, because nothing verifies them but a moderator.
-- `margin` is how much more alike the two are than their nearest others.  `chunks` is a JSON array of the chunks that
-- belong together, [of a, of b, their cosine].  A row counts while both stories have the texts with these hashes.
CREATE TABLE meaning_flags (
    flag_id INTEGER PRIMARY KEY AUTOINCREMENT,
    a INTEGER NOT NULL,
    b INTEGER NOT NULL,
    kind TEXT NOT NULL,
    margin REAL NOT NULL,
    chunks TEXT NOT NULL,
    model TEXT NOT NULL,
    text_hash_a BLOB NOT NULL,
    text_hash_b BLOB NOT NULL,
    flagged_at INTEGER NOT NULL,
    exported_at INTEGER,
    UNIQUE (a, b)
);
CREATE INDEX meaning_flags_b ON meaning_flags (b);
CREATE INDEX meaning_flags_queue ON meaning_flags (margin DESC, a, b);

-- What moderators decided.  Verdicts given at once share a `decision`, the id of the first of them.
-- `case_id` is the case that the flag was in then, and `joins_clusters` says whether its kind joined clusters.
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
    case_id INTEGER,
    joins_clusters INTEGER NOT NULL,
    undone_at INTEGER,
    undone_by TEXT
);
CREATE INDEX verdicts_pair ON verdicts (a, b, verdict_id, undone_at, verdict, moderator, decided_at);
CREATE INDEX verdicts_b ON verdicts (b);
CREATE INDEX verdicts_time ON verdicts (decided_at);
CREATE INDEX verdicts_decision ON verdicts (decision);
CREATE INDEX verdicts_moderator ON verdicts (moderator, decision);

-- What two moderators said of a case that was judged twice, the second without seeing the first verdict; see
-- neardup.ledger.verdicts.
CREATE TABLE second_reviews (
    case_id INTEGER PRIMARY KEY,
    first TEXT NOT NULL,
    first_moderator TEXT NOT NULL,
    second TEXT NOT NULL,
    second_moderator TEXT NOT NULL,
    note TEXT NOT NULL,
    reviewed_at INTEGER NOT NULL
);

-- The verdicts that apply: of each pair the latest that was not undone, if it decides the pair.
CREATE VIEW active_verdicts AS
    SELECT * FROM verdicts v WHERE undone_at IS NULL AND verdict NOT IN ('unsure', 'reopened') AND NOT EXISTS
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

-- The outbox of the webhooks, see neardup.ledger.webhook_events.  `event` is a JSON object.  An event is posted from `due_at` on, which is
-- NULL once it is dead; `error` says why the last attempt failed.
CREATE TABLE webhook_events (
    event_id INTEGER PRIMARY KEY AUTOINCREMENT,
    topic TEXT NOT NULL,
    event TEXT NOT NULL,
    due_at INTEGER,
    attempts INTEGER NOT NULL DEFAULT 0,
    error TEXT
);
CREATE INDEX webhook_events_due ON webhook_events (due_at) WHERE due_at IS NOT NULL;

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
        coalesce(title, page_title, path, s.name, CAST(id AS TEXT)) AS title, published_at, updated_at, known_since,
        s.name AS name, w.catalogue, w.licence
    FROM stories s JOIN languages l ON l.number = s.language LEFT JOIN works w ON w.story_id = s.id;

-- The flags of pairs of which both stories are present, as an export shows them: `matched` is the earlier of the two by
-- publication, `story` the later.  If that is not known, because a time is missing or both are equal, the two have a
-- fixed order all the same, which means nothing: `core.publication_order` says which case it is.
CREATE VIEW pairs AS
    SELECT f.flag_id, f.kind, f.severity, f.strength, f.similarity, f.hamming, f.jaccard, f.longest_run_words, f.signals, f.status,
        f.flagged_at, f.fingerprint_version, f.exported_at, f.estimated, f.a, f.b, l.name AS language,
        s.id AS story_id, s.name AS story_name, s.path AS story_path,
        coalesce(s.title, s.page_title, s.path, s.name, CAST(s.id AS TEXT)) AS story_title,
        CAST(s.author_id AS TEXT) AS story_author_id, s.published_at AS story_published_at,
        s.updated_at AS story_updated_at, s.known_since AS story_known_since,
        m.id AS matched_id, m.name AS matched_name, m.path AS matched_path,
        coalesce(m.title, m.page_title, m.path, m.name, CAST(m.id AS TEXT)) AS matched_title,
        CAST(m.author_id AS TEXT) AS matched_author_id, m.published_at AS matched_published_at,
        m.updated_at AS matched_updated_at, m.known_since AS matched_known_since, w.catalogue, w.licence,
        iif(s.id = f.a, f.containment_a, f.containment_b) AS containment,
        iif(s.id = f.a, f.containment_b, f.containment_a) AS matched_containment,
        c.verdict AS context, c.note AS context_note, c.moderator AS context_by, c.decided_at AS context_at,
        v.verdict, v.moderator, v.note, v.decided_at, v.undone_at, v.undone_by,
        CAST(f.signals ->> 'copied_words' AS INTEGER) AS copied_words,
        p.permission_id, p.licence AS permission_licence, p.until AS permission_until,
        h.serial AS story_serial, i.serial AS matched_serial
    FROM flags f
    CROSS JOIN languages l ON l.number = f.language
    CROSS JOIN stories s ON s.id IN (f.a, f.b)
    CROSS JOIN stories m ON m.id = iif(s.id = f.a, f.b, f.a)
    LEFT JOIN works w ON w.story_id = m.id
    LEFT JOIN verdicts c ON c.verdict_id = f.context
    LEFT JOIN verdicts v ON v.verdict_id = (SELECT max(verdict_id) FROM verdicts w WHERE w.a = f.a AND w.b = f.b)
    LEFT JOIN permissions p ON f.status = 'permitted'
        -- not min(permission_id), for which SQLite reads all flags
        AND p.permission_id = (SELECT permission_id FROM permitted_flags g WHERE g.flag_id = f.flag_id ORDER BY 1 LIMIT 1)
    LEFT JOIN chapter_pairs k ON k.a = f.a AND k.b = f.b AND k.match IS NOT NULL
    LEFT JOIN chapters h ON h.story_id = s.id AND k.match IS NOT NULL
    LEFT JOIN chapters i ON i.story_id = m.id AND k.match IS NOT NULL
    WHERE (m.sort_time, m.id) < (s.sort_time, s.id);

-- The rows of `meaning_flags` that count, in the order of publication as in `pairs`.  A pair that is flagged by its words
-- is no longer one of them.  The status is the active verdict on the pair, permitted as in `permitted_flags`, or open.
CREATE VIEW meaning_pairs AS
    SELECT f.flag_id, f.kind, f.margin, f.chunks, f.model, f.flagged_at, f.exported_at, f.a, f.b,
        coalesce((SELECT verdict FROM active_verdicts v WHERE v.a = f.a AND v.b = f.b), iif(EXISTS
            (SELECT 1 FROM permissions p, stories x, stories y WHERE x.id = m.id AND y.id = s.id AND p.in_force
                AND (x.author_id = y.author_id) IS NOT TRUE
                AND ((p.granted_by = x.author_id AND coalesce(p.story_id, x.id) = x.id
                        AND (p.serial IS NULL OR (SELECT serial FROM chapters c WHERE c.story_id = x.id) IN (p.serial, p.serial_stem)) OR p.catalogue = m.catalogue)
                        AND coalesce(p.granted_to = y.author_id, p.granted_to IS NULL)
                    OR (m.id < 0 OR m.published_at < s.published_at) IS NOT TRUE AND p.granted_by = y.author_id
                        AND coalesce(p.story_id, y.id) = y.id
                        AND (p.serial IS NULL OR (SELECT serial FROM chapters c WHERE c.story_id = y.id) IN (p.serial, p.serial_stem))
                        AND coalesce(p.granted_to = x.author_id, p.granted_to IS NULL))),
            'permitted', 'open')) AS status,
        (s.author_id = m.author_id) IS TRUE AS same_author,
        s.language, s.id AS story_id, s.name AS story_name, s.path AS story_path, s.title AS story_title,
        s.author_id AS story_author_id, s.published_at AS story_published_at, s.updated_at AS story_updated_at,
        s.known_since AS story_known_since,
        m.language AS matched_language, m.id AS matched_id, m.name AS matched_name, m.path AS matched_path,
        m.title AS matched_title, m.author_id AS matched_author_id, m.published_at AS matched_published_at,
        m.updated_at AS matched_updated_at, m.known_since AS matched_known_since, m.catalogue, m.licence,
        v.verdict, v.moderator, v.note, v.decided_at, v.undone_at, v.undone_by
    FROM meaning_flags f
    CROSS JOIN described s ON s.id IN (f.a, f.b)
    CROSS JOIN described m ON m.id = iif(s.id = f.a, f.b, f.a)
    LEFT JOIN verdicts v ON v.verdict_id = (SELECT max(verdict_id) FROM verdicts w WHERE w.a = f.a AND w.b = f.b)
    WHERE (m.id >= 0, coalesce(m.published_at, 9223372036854775807), m.id)
            < (s.id >= 0, coalesce(s.published_at, 9223372036854775807), s.id)
        AND s.text_hash = iif(s.id = f.a, f.text_hash_a, f.text_hash_b)
        AND m.text_hash = iif(m.id = f.a, f.text_hash_a, f.text_hash_b)
        AND NOT EXISTS (SELECT 1 FROM flags x WHERE x.a = f.a AND x.b = f.b AND x.status <> 'withdrawn');

-- The flags by which a story copies a source: an earlier story, in the order of `pairs`, by another author.  An author
-- who is not known counts as another.  Text that a verdict calls a repost or a template is not copied from a source.
CREATE VIEW sources AS
    SELECT s.id AS story_id, m.id AS source_id, f.flag_id, f.spans_a AS spans, f.spans_b AS source_spans
    FROM stories s CROSS JOIN flags f ON f.a = s.id CROSS JOIN stories m ON m.id = f.b
    WHERE +f.status IN ('open', 'plagiarism', 'quotation') AND (f.author_a = f.author_b) IS NOT TRUE
        AND (m.sort_time, m.id) < (s.sort_time, s.id)
    UNION ALL SELECT s.id, m.id, f.flag_id, f.spans_b, f.spans_a
    FROM stories s CROSS JOIN flags f ON f.b = s.id CROSS JOIN stories m ON m.id = f.a
    WHERE +f.status IN ('open', 'plagiarism', 'quotation') AND (f.author_a = f.author_b) IS NOT TRUE
        AND (m.sort_time, m.id) < (s.sort_time, s.id);

-- The flags of each author, once for either side.  `is_later` says whether the author's story was published after the
-- other one; it is NULL where that is not known.  Authors who are not known have no flags here.
CREATE VIEW author_flags AS
    SELECT author_a AS author, a AS story_id, b AS other_id, author_b AS other_author, kind, status, flagged_at,
        later_id = a AS is_later
    FROM flags WHERE author_a IS NOT NULL AND +status <> 'withdrawn'
    UNION ALL SELECT author_b, b, a, author_a, kind, status, flagged_at, later_id = b
    FROM flags WHERE author_b IS NOT NULL AND +status <> 'withdrawn';

-- When moderators asked the platform to hide the undecided stories of an author, and took that back.
CREATE TABLE hidden_authors (
    hiding_id INTEGER PRIMARY KEY,
    author NOT NULL,
    note TEXT NOT NULL,
    moderator TEXT NOT NULL,
    hidden_at INTEGER NOT NULL,
    shown_at INTEGER,
    shown_by TEXT
);
CREATE UNIQUE INDEX hidden_authors_now ON hidden_authors (author) WHERE shown_at IS NULL;

-- What the platform is asked to hide: the stories of these authors with an open flag by which they may copy from others.
CREATE VIEW hidden_stories AS
    SELECT story_id FROM author_flags WHERE author IN (SELECT author FROM hidden_authors WHERE shown_at IS NULL)
        AND other_author IS NOT author AND +status = 'open' AND is_later IS NOT 0;

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
    INSERT INTO due_similarities
        SELECT new.a WHERE ((SELECT sort_time, id FROM stories WHERE id = new.a) < (SELECT sort_time, id FROM stories WHERE id = new.b)) IS NOT TRUE
        UNION SELECT new.b WHERE ((SELECT sort_time, id FROM stories WHERE id = new.a) > (SELECT sort_time, id FROM stories WHERE id = new.b)) IS NOT TRUE
        ON CONFLICT DO NOTHING;
END;
CREATE TRIGGER flag_updated AFTER UPDATE OF kind, status, author_a, author_b, spans_a, spans_b ON flags
WHEN (old.kind, old.status, old.author_a, old.author_b, old.spans_a, old.spans_b)
    IS NOT (new.kind, new.status, new.author_a, new.author_b, new.spans_a, new.spans_b) BEGIN
    INSERT INTO due_similarities
        SELECT new.a WHERE ((SELECT sort_time, id FROM stories WHERE id = new.a) < (SELECT sort_time, id FROM stories WHERE id = new.b)) IS NOT TRUE
        UNION SELECT new.b WHERE ((SELECT sort_time, id FROM stories WHERE id = new.a) > (SELECT sort_time, id FROM stories WHERE id = new.b)) IS NOT TRUE
        ON CONFLICT DO NOTHING;
END;
CREATE TRIGGER flag_deleted AFTER DELETE ON flags BEGIN
    INSERT INTO due_similarities
        SELECT old.a WHERE ((SELECT sort_time, id FROM stories WHERE id = old.a) < (SELECT sort_time, id FROM stories WHERE id = old.b)) IS NOT TRUE
        UNION SELECT old.b WHERE ((SELECT sort_time, id FROM stories WHERE id = old.a) > (SELECT sort_time, id FROM stories WHERE id = old.b)) IS NOT TRUE
        ON CONFLICT DO NOTHING;
END;
CREATE TRIGGER publication AFTER UPDATE OF published_at ON stories WHEN old.published_at IS NOT new.published_at BEGIN
    UPDATE flags SET published_a = new.published_at WHERE a = new.id;
    UPDATE flags SET published_b = new.published_at WHERE b = new.id;
    INSERT INTO due_similarities
        SELECT b FROM flags WHERE a = new.id UNION SELECT a FROM flags WHERE b = new.id UNION SELECT new.id WHERE true
        ON CONFLICT DO NOTHING;
END;

-- What moderators decide as one: the flags of a cluster, or of a story that is in none with its sources; see
-- neardup.ledger.cases.  `case_id` is the lowest id in the cluster, works apart, or the id of the story; `lead` is the story with the
-- highest similarity, `author` its author.  `stories` counts sources, too.  Flags that `detection.same_author = "hide"` leaves out count only in a case without
-- others, which is `hidden`.  `opened_at` and `flagged_at` are the times of the first flag and of the last.  `kinds`, `statuses` and `catalogues` are lists like ",exact,near,"; the last
-- are those of the works copied; `unsure` a JSON array of the
-- moderators who asked for a second opinion on its open flags.  `history` counts the cases of the author with the verdict
-- plagiarism; `is_ordered` says that the lead is known to be later than the stories it matches.  `decided_at` and `decided_by` are those
-- of the last verdict on its flags that stands and decides them.
CREATE TABLE cases (
    case_id INTEGER PRIMARY KEY,
    lead INTEGER NOT NULL,
    language INTEGER NOT NULL,
    author,
    similarity REAL NOT NULL,
    severity INTEGER NOT NULL,
    kinds TEXT NOT NULL,
    statuses TEXT NOT NULL,
    flags INTEGER NOT NULL,
    open_flags INTEGER NOT NULL,
    stories INTEGER NOT NULL,
    same_author INTEGER NOT NULL,
    hidden INTEGER NOT NULL,
    opened_at INTEGER NOT NULL,
    flagged_at INTEGER NOT NULL,
    unsure TEXT NOT NULL,
    is_ordered INTEGER NOT NULL,
    catalogues TEXT NOT NULL,
    decided_at INTEGER,
    decided_by TEXT,
    history INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX cases_author ON cases (author) WHERE author IS NOT NULL;
CREATE INDEX cases_by_similarity ON cases (similarity DESC, severity, case_id, open_flags, hidden);
CREATE INDEX cases_by_date ON cases (flagged_at DESC, similarity DESC, severity, case_id, open_flags, hidden);
CREATE INDEX cases_counted ON cases (language, kinds, statuses, catalogues, same_author, hidden, open_flags);
CREATE INDEX cases_opened ON cases (opened_at, hidden, kinds);
CREATE INDEX cases_decided ON cases (decided_at, open_flags, hidden, kinds, decided_by, opened_at) WHERE decided_at IS NOT NULL;
CREATE INDEX cases_unsure ON cases (case_id) WHERE unsure <> '[]';

-- What `cases.refresh` is to read again: flags, and cases that lost a flag.
CREATE TABLE due_flags (flag_id INTEGER PRIMARY KEY);
CREATE TABLE due_cases (case_id INTEGER PRIMARY KEY);
CREATE TRIGGER case_of_inserted_flag AFTER INSERT ON flags BEGIN
    INSERT INTO due_flags VALUES (new.flag_id) ON CONFLICT DO NOTHING;
END;
CREATE TRIGGER case_of_updated_flag
AFTER UPDATE OF kind, status, joins_clusters, author_a, author_b, same_author, spans_a, spans_b, flagged_at ON flags
BEGIN
    INSERT INTO due_flags VALUES (new.flag_id) ON CONFLICT DO NOTHING;
END;
CREATE TRIGGER case_of_deleted_flag AFTER DELETE ON flags WHEN old.case_id IS NOT NULL BEGIN
    INSERT INTO due_cases VALUES (old.case_id) ON CONFLICT DO NOTHING;
END;
CREATE TRIGGER case_of_published_story AFTER UPDATE OF published_at ON stories
WHEN old.published_at IS NOT new.published_at BEGIN
    INSERT INTO due_flags SELECT flag_id FROM flags WHERE a = new.id OR b = new.id ON CONFLICT DO NOTHING;
END;
CREATE TRIGGER case_of_given_verdict AFTER INSERT ON verdicts BEGIN
    INSERT INTO due_flags SELECT flag_id FROM flags WHERE a = new.a AND b = new.b ON CONFLICT DO NOTHING;
END;
CREATE TRIGGER case_of_undone_verdict AFTER UPDATE OF undone_at ON verdicts BEGIN
    INSERT INTO due_flags SELECT flag_id FROM flags WHERE a = new.a AND b = new.b ON CONFLICT DO NOTHING;
END;

-- What the self-checks measured, see neardup.ledger.self_checks: of `total` copies that should be found, `found` were.  `stories` is
-- how many stories they are of, and `stories_found` the sum of the shares found of each.  `language` and `subject`, an edit or a
-- tier, may be 'all'.
CREATE TABLE recalls (
    measure TEXT NOT NULL,
    measured_at INTEGER NOT NULL,
    language TEXT NOT NULL,
    subject TEXT NOT NULL,
    found INTEGER NOT NULL,
    total INTEGER NOT NULL,
    stories_found REAL NOT NULL,
    stories INTEGER NOT NULL,
    PRIMARY KEY (measure, measured_at, language, subject)
) WITHOUT ROWID;

-- Which moderator has which case open, and until when; see neardup.ledger.cases.
CREATE TABLE leases (
    case_id INTEGER PRIMARY KEY,
    moderator TEXT NOT NULL,
    since INTEGER NOT NULL,
    until INTEGER NOT NULL
);

-- Complaints about stories, see neardup.ledger.complaints.  The original is a story on record, a text compressed by zlib with the hash of what is compared of it,
-- or not named.  `complainant` and `contact` are NULL once the complainant was forgotten.  `evidence` is a JSON object.  `decision` is that of the verdict by which the complaint was closed.
CREATE TABLE complaints (
    complaint_id INTEGER PRIMARY KEY AUTOINCREMENT,
    story_id INTEGER NOT NULL,
    original_id INTEGER,
    original_text BLOB,
    original_hash BLOB,
    complainant TEXT,
    contact TEXT,
    statement TEXT NOT NULL,
    evidence TEXT,
    received_at INTEGER NOT NULL,
    due_at INTEGER NOT NULL,
    closed_at INTEGER,
    outcome TEXT,
    decision INTEGER
);
CREATE INDEX complaints_story ON complaints (story_id);
CREATE INDEX complaints_original ON complaints (original_id) WHERE original_id IS NOT NULL;
CREATE INDEX complaints_open ON complaints (due_at, complaint_id) WHERE closed_at IS NULL;
CREATE INDEX complaints_closed ON complaints (closed_at DESC, complaint_id DESC) WHERE closed_at IS NOT NULL;

-- Each step of a complaint; `moderator` is NULL for a program.  Rows are only added, and words only taken out of them, where a person is forgotten.
CREATE TABLE complaint_steps (
    step_id INTEGER PRIMARY KEY AUTOINCREMENT,
    complaint_id INTEGER NOT NULL,
    step TEXT NOT NULL,
    at INTEGER NOT NULL,
    moderator TEXT,
    note TEXT NOT NULL
);
CREATE INDEX complaint_steps_complaint ON complaint_steps (complaint_id);
CREATE TRIGGER complaint_step_stays BEFORE DELETE ON complaint_steps BEGIN
    SELECT RAISE(ABORT, 'the log of complaints only grows');
END;
CREATE TRIGGER complaint_step_is_fixed BEFORE UPDATE ON complaint_steps
WHEN (old.step_id, old.complaint_id, old.step, old.at, old.moderator) IS NOT (new.step_id, new.complaint_id, new.step, new.at, new.moderator)
    OR new.note <> '' BEGIN
    SELECT RAISE(ABORT, 'the log of complaints only grows');
END;
