"""[export]: the file and the message that follow a run."""

from typing import Annotated, Literal

from msgspec import Meta

from neardup.config.address import HttpUrl
from neardup.config.section import FromText, Section
from neardup.option_values import Format, Target, format_of, target_of, unknown_ending


class Export(Section, frozen=True, kw_only=True):
    """[export]: the file and the message that follow a run."""

    path: Annotated[
        Target | None,
        FromText(target_of),
        Meta(description="File or `s3://BUCKET/KEY` that receives all open flags after each run. Unset means no file."),
    ] = None
    format: Annotated[
        Format | None,
        Meta(
            description="Format of that file: `csv`, `jsonl`, `xlsx`, `parquet` or `html`. Unset means the format that "
            "the ending of `path` names, or else `csv`."
        ),
    ] = None
    webhook: Annotated[
        HttpUrl,
        Meta(
            description="URL that receives a JSON summary of each `daily`, `backfill` and `retry` run by POST. "
            "Empty means none."
        ),
    ] = ""
    webhook_kinds: Annotated[
        tuple[Literal["translated", "retold"], ...],
        Meta(
            description="The kinds `translated` and `retold` whose new pairs `neardup embed` posts to `webhook`, with "
            "how many it found of each. Empty means none."
        ),
    ] = ()

    def __post_init__(self) -> None:
        if self.path and not self.format and (problem := unknown_ending(self.path)):
            raise ValueError(f"path: {problem}, or set export.format")

    @property
    def path_format(self) -> Format:
        """The format of the file at `path`: `format`, or the one that the ending of `path` names, or CSV."""
        return self.format or (format_of(self.path) if self.path else None) or "csv"
