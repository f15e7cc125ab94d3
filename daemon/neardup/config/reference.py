"""[reference]: the works to protect, which are earlier than every story of the platform."""

from pathlib import Path
from typing import ClassVar, Literal

from neardup.config.content import Content
from neardup.config.extract import Extract
from neardup.config.section import Section, refuse_missing, setting

NEEDED = {"manifest": ("manifest",), "athena": ("database", "output", "sql")}


class WorksContent(Content):
    """[reference.content]: the object store or folder that holds the pages of works."""

    section: ClassVar[str] = "reference.content"


class Reference(Section):
    """[reference]: the works to protect, and where their pages are."""

    kind: Literal["manifest", "athena"] = setting(
        default="manifest", description="Where the list of works comes from: `manifest` (a file) or `athena`."
    )
    manifest: Path | None = setting(
        default=None,
        description="CSV, JSONL or Parquet file that lists the works: the columns of a manifest of stories, "
        "`catalogue`, and optionally `licence`. Required for `manifest`.",
    )
    database: str = setting(default="", description="Athena database. Required for `athena`.")
    workgroup: str = setting(default="primary", description="Athena workgroup.")
    output: str = setting(
        default="", description="`s3://` folder where Athena puts its query results. Required for `athena`."
    )
    sql: str = setting(
        default="",
        description="Query that lists every work. It must return `id`, `language` and `catalogue`, and may return "
        "`licence` and the other columns of `source.backfill_sql`. Required for `athena`.",
    )
    content: WorksContent = setting(description="The store of the works' pages.")
    extract: Extract = setting(default=Extract(), description="Which part of a work's page is its text.")

    def check(self) -> None:
        refuse_missing(self, self.kind, NEEDED[self.kind])

    @property
    def backfill_sql(self) -> str:
        """The query by the name that it has in [source]."""
        return self.sql

    @property
    def daily_sql(self) -> str:
        """None: every listing lists all works."""
        return ""
