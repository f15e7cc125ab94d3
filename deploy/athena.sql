-- The table that neardup lists stories from, and its two queries.  Run the first two statements once,
-- in the workgroup of [source]; the queries are for config.toml.

CREATE DATABASE IF NOT EXISTS stories;

-- One row for a version of a story; all times in UTC.  Several versions of one id may stand in the
-- table, in any order: the latest updated_at counts.
--
-- Partitioned by the day of updated_at, so that a day's stories are one folder, written once, and a
-- query for what is new can leave the years before unread.  Partition projection: a day is there as
-- soon as its folder is, without a crawler or ALTER TABLE.
CREATE EXTERNAL TABLE IF NOT EXISTS stories.stories (
    id           bigint    COMMENT 'required, from 0',
    language     string    COMMENT 'required: HINDI, ENGLISH, ... or hi, en, ...',
    path         string    COMMENT 'the page, below content.url; where NULL, content.key is filled in',
    author_id    string,
    title        string,
    published_at timestamp,
    updated_at   timestamp COMMENT 'the watermark of the daily runs'
)
PARTITIONED BY (updated_day string)
STORED AS PARQUET
LOCATION 's3://TABLE-BUCKET/stories/'
TBLPROPERTIES (
    'projection.enabled' = 'true',
    'projection.updated_day.type' = 'date',
    'projection.updated_day.format' = 'yyyy-MM-dd',
    'projection.updated_day.range' = '2014-01-01,NOW',
    'projection.updated_day.interval' = '1',
    'projection.updated_day.interval.unit' = 'DAYS',
    'storage.location.template' = 's3://TABLE-BUCKET/stories/updated_day=${updated_day}/'
);

-- What the queries give is a CSV file.  Its columns are known by name; only id and language must be
-- there.  Two things to mind:
--   * Times: to_iso8601(with_timezone(..., 'UTC')) gives RFC 3339, 2026-11-19T02:00:00.000Z.  A bare
--     timestamp is read too, 2026-11-19 02:00:00.000, and taken for UTC: convert what is not.  A column of
--     local times would move the watermark, and stories would be missed.  Text in another form needs
--     date_parse(...) first; a time that cannot be read makes its row a dead letter, bad_time.
--   * Numbers: an id kept as text or decimal wants CAST(id AS bigint); 17.0 and 1.7E1 are no ids.
-- And no semicolon at the end: `neardup doctor` asks for backfill_sql's columns as a subquery.

-- backfill_sql: every story.
SELECT id, language, path, author_id, title,
       to_iso8601(with_timezone(published_at, 'UTC')) AS published_at,
       to_iso8601(with_timezone(updated_at, 'UTC')) AS updated_at
FROM stories

-- daily_sql: what was updated at or after the watermark less run.overlap.  The daemon gives the one ?
-- as a string literal in single quotes, '2026-11-19T01:00:00.000+00:00'.
SELECT id, language, path, author_id, title,
       to_iso8601(with_timezone(published_at, 'UTC')) AS published_at,
       to_iso8601(with_timezone(updated_at, 'UTC')) AS updated_at
FROM stories
WHERE updated_at >= from_iso8601_timestamp(?)

-- That opens every day's files, if only their footers.  Where this is too slow, let the ? choose
-- whole days instead: WHERE updated_day >= substr(?, 1, 10).  Listed again, a story that the
-- ledger has at this updated_at is skipped before any request.  Not a fixed "last seven days": after a longer
-- outage it would pass over stories, and the watermark with it.
