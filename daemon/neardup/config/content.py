"""[content]: the object store or folder that holds the pages."""

from typing import Annotated, ClassVar
from urllib.parse import urlsplit

from msgspec import Meta

from neardup.config.section import Section, matching


class Content(Section, frozen=True, kw_only=True):
    """[content]: the object store or folder that holds the pages.  Messages call it `section`."""

    section: ClassVar[str] = "content"
    url: Annotated[
        str,
        Meta(
            description="Where the pages are: `file:PATH` or `s3://BUCKET/PREFIX`; `texts:FILE` after a scan of tables."
        ),
    ]
    key: Annotated[
        str,
        Meta(
            description="Path of a page below `url`, for stories whose row has no `path`. "
            "`{language}` and `{id}` are filled in."
        ),
    ] = "{language}/{id}.html"
    link: Annotated[
        str | None,
        Meta(
            description="Address of a story on the platform, for case files and notices: "
            "`https://example.com/story/{id}`. `{language}` and `{id}` are filled in."
        ),
    ] = None
    endpoint: Annotated[
        Annotated[str, matching(r"https?://[^@\s]+", "an http:// or https:// URL without a password")] | None,
        Meta(description="URL of an S3-compatible store. Unset means AWS."),
    ] = None
    region: Annotated[
        str | None,
        Meta(
            description="AWS region of the buckets and of Athena. Unset means the one that `AWS_REGION` or the AWS "
            "profile names."
        ),
    ] = None
    path_style: Annotated[
        bool, Meta(description="`true` puts the bucket into the path of the URL instead of the host name.")
    ] = False
    max_bytes: Annotated[
        int, Meta(gt=0, description="Of a page of more bytes only so many are read; its story is marked as truncated.")
    ] = 5_000_000

    def __post_init__(self) -> None:
        if urlsplit(self.url).scheme not in ("file", "s3", "texts"):
            raise ValueError(f"url: {self.url!r} is neither file:PATH nor s3://BUCKET/PREFIX")
        for name, template in (("key", self.key), ("link", self.link or "")):
            try:
                template.format(language="HINDI", id=1)
            except (LookupError, ValueError, TypeError, AttributeError):
                wrong = f"{name}: {template!r} may hold {{language}} and {{id}}, nothing else in braces"
                raise ValueError(wrong) from None
        if self.link and urlsplit(self.link).scheme not in ("http", "https"):
            raise ValueError(f"link: {self.link!r} is no http or https address")
