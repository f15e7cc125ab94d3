"""[source]: where the list of stories comes from."""

from pathlib import Path
from typing import Annotated, Literal

from msgspec import Meta

from neardup.config.section import Section, refuse_missing

NEEDED = {
    "manifest": ("manifest",),
    "athena": ("database", "output", "backfill_sql", "daily_sql"),
    "scan": (),
}


class Source(Section, frozen=True, kw_only=True):
    """[source]: where the list of stories comes from."""

    kind: Annotated[
        Literal["manifest", "athena", "scan"],
        Meta(
            description="Where the list of stories comes from: `manifest` (a file) or `athena`. `scan` stands in the "
            "configuration of a ledger that `neardup scan` kept."
        ),
    ] = "manifest"
    manifest: Annotated[
        Path | None, Meta(description="CSV, JSONL or Parquet file that lists the stories. Required for `manifest`.")
    ] = None
    database: Annotated[str, Meta(description="Athena database. Required for `athena`.")] = ""
    workgroup: Annotated[str, Meta(description="Athena workgroup.")] = "primary"
    output: Annotated[
        str, Meta(description="`s3://` folder where Athena puts its query results. Required for `athena`.")
    ] = ""
    backfill_sql: Annotated[
        str,
        Meta(
            description="Query that lists every story. It must return `id` and `language`, and may return `path`, "
            "`author_id`, `title`, `published_at` and `updated_at`. Required for `athena`."
        ),
    ] = ""
    daily_sql: Annotated[
        str,
        Meta(
            description="Query that lists the stories updated since a time. It contains one `?`, which receives that "
            "time as a string, for example `updated_at >= from_iso8601_timestamp(?)`. Required for `athena`."
        ),
    ] = ""

    def __post_init__(self) -> None:
        refuse_missing(self, self.kind, NEEDED[self.kind])
        if self.kind == "athena" and "?" not in self.daily_sql:
            raise ValueError("daily_sql needs a ? where the watermark goes")
