"""[content]: the object store or folder that holds the pages."""

from typing import Annotated, ClassVar
from urllib.parse import urlsplit

from neardup.config.section import Section, matching, setting


class Content(Section):
    """[content]: the object store or folder that holds the pages.  Messages call it `section`."""

    section: ClassVar[str] = "content"
    url: str = setting(
        description="Where the pages are: `file:PATH` or `s3://BUCKET/PREFIX`; `texts:FILE` after a scan of tables."
    )
    key: str = setting(
        default="{language}/{id}.html",
        description="Path of a page below `url`, for stories whose row has no `path`. "
        "`{language}` and `{id}` are filled in.",
    )
    link: str | None = setting(
        default=None,
        description="Address of a story on the platform, for case files and notices: "
        "`https://example.com/story/{id}`. `{language}` and `{id}` are filled in.",
    )
    endpoint: Annotated[str, matching(r"https?://[^@\s]+", "an http:// or https:// URL without a password")] | None = (
        setting(default=None, description="URL of an S3-compatible store. Unset means AWS.")
    )
    region: str | None = setting(
        default=None,
        description="AWS region of the buckets and of Athena. Unset means the one that `AWS_REGION` or the AWS "
        "profile names.",
    )
    path_style: bool = setting(
        default=False, description="`true` puts the bucket into the path of the URL instead of the host name."
    )
    max_bytes: int = setting(
        default=5_000_000,
        gt=0,
        description="Of a page of more bytes only so many are read; its story is marked as truncated.",
    )

    def check(self) -> None:
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
