"""[reference]: the works to protect, which are earlier than every story of the platform."""

from pathlib import Path
from typing import Annotated, ClassVar, Literal

from msgspec import Meta

from neardup.config.content import Content
from neardup.config.extract import Extract
from neardup.config.section import Section, refuse_missing

NEEDED = {"manifest": ("manifest",), "athena": ("database", "output", "sql")}


class WorksContent(Content, frozen=True, kw_only=True):
    """[reference.content]: the object store or folder that holds the pages of works."""

    section: ClassVar[str] = "reference.content"


class Reference(Section, frozen=True, kw_only=True):
    """[reference]: the works to protect, and where their pages are."""

    kind: Annotated[
        Literal["manifest", "athena"],
        Meta(description="Where the list of works comes from: `manifest` (a file) or `athena`."),
    ] = "manifest"
    manifest: Annotated[
        Path | None,
        Meta(
            description="CSV, JSONL or Parquet file that lists the works: the columns of a manifest of stories, "
            "`catalogue`, and optionally `licence`. Required for `manifest`."
        ),
    ] = None
    database: Annotated[str, Meta(description="Athena database. Required for `athena`.")] = ""
    workgroup: Annotated[str, Meta(description="Athena workgroup.")] = "primary"
    output: Annotated[
        str, Meta(description="`s3://` folder where Athena puts its query results. Required for `athena`.")
    ] = ""
    sql: Annotated[
        str,
        Meta(
            description="Query that lists every work. It must return `id`, `language` and `catalogue`, and may return "
            "`licence` and the other columns of `source.backfill_sql`. Required for `athena`."
        ),
    ] = ""
    content: Annotated[WorksContent, Meta(description="The store of the works' pages.")]
    extract: Annotated[Extract, Meta(description="Which part of a work's page is its text.")] = Extract()

    def __post_init__(self) -> None:
        refuse_missing(self, self.kind, NEEDED[self.kind])

    @property
    def backfill_sql(self) -> str:
        """The query by the name that it has in [source]."""
        return self.sql

    @property
    def daily_sql(self) -> str:
        """None: every listing lists all works."""
        return ""
