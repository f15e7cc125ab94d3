"""[index]: where the candidate index is kept."""

from typing import Annotated, Literal

from msgspec import Meta

from neardup.config.section import Section, matching


class Index(Section, frozen=True, kw_only=True):
    """[index]: where the candidate index is kept."""

    url: Annotated[
        Annotated[
            str,
            matching(
                r"sqlite:|(rediss?|unix)://.*", "sqlite: or a URL that begins with redis://, rediss:// or unix://"
            ),
        ],
        Meta(
            description="`sqlite:` keeps the index in the ledger's file. "
            "`redis://`, `rediss://` and `unix://` name a Redis server."
        ),
    ] = "sqlite:"
    layout: Annotated[
        Literal["documented", "compact"],
        Meta(
            description="Layout of the Redis keys: `documented`, which other programs can read, or `compact`, "
            "which takes about half the memory or less."
        ),
    ] = "documented"
