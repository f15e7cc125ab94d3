-- The Athena table that lists the stories, and the two queries of neardup.  Run the first two statements once, in the
-- workgroup of [source].  The queries are for config.toml.

CREATE DATABASE IF NOT EXISTS stories;

-- A row is one version of a story, with all times in UTC.  The table may hold several versions of an id, in any order.
-- The one with the latest updated_at counts.
--
-- The table is partitioned by the day of updated_at.  The stories of a day are one folder, written once, and a query
-- for new stories need not read older folders.  Partition projection makes a day visible as soon as its folder exists,
-- without a crawler or ALTER TABLE.
CREATE EXTERNAL TABLE IF NOT EXISTS stories.stories (
    id           bigint    COMMENT 'required, from 0',
    language     string    COMMENT 'required: HINDI, ENGLISH, ... or hi, en, ...',
    path         string    COMMENT 'the page, below content.url; NULL means content.key',
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

-- The result of a query is a CSV file.  neardup finds its columns by name; only id and language are required.  Rules:
--   * Times: to_iso8601(with_timezone(..., 'UTC')) returns RFC 3339, as in 2026-11-19T02:00:00.000Z.  neardup also reads
--     a plain timestamp, as in 2026-11-19 02:00:00.000, as UTC.  Convert other time zones: local times would move the
--     watermark, and a daily run would miss stories.  Text in another format needs date_parse(...) first.  A row with a
--     time that cannot be read becomes a dead letter, bad_time.
--   * Numbers: an id that is text or decimal needs CAST(id AS bigint).  17.0 and 1.7E1 are not ids.
--   * No semicolon at the end: `neardup doctor` runs backfill_sql as a subquery to see its columns.

-- backfill_sql: every story.
SELECT id, language, path, author_id, title,
       to_iso8601(with_timezone(published_at, 'UTC')) AS published_at,
       to_iso8601(with_timezone(updated_at, 'UTC')) AS updated_at
FROM stories

-- daily_sql: the stories updated at or after the watermark minus run.overlap.  The daemon replaces the one ? by a
-- string literal in single quotes, as in '2026-11-19T01:00:00.000+00:00'.
SELECT id, language, path, author_id, title,
       to_iso8601(with_timezone(published_at, 'UTC')) AS published_at,
       to_iso8601(with_timezone(updated_at, 'UTC')) AS updated_at
FROM stories
WHERE updated_at >= from_iso8601_timestamp(?)

-- This query opens the files of every day, though only their footers.  If that is too slow, let the ? select whole days
-- instead: WHERE updated_day >= substr(?, 1, 10).  A story that the ledger already has with the same updated_at is
-- skipped without a request to the store.  Do not use a fixed period such as the last seven days: after a longer outage
-- the query would miss stories, and the watermark would move past them.
