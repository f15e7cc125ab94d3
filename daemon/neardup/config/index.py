"""[index]: where the candidate index is kept."""

from typing import Annotated, Literal

from neardup.config.section import Section, matching, setting


class Index(Section):
    """[index]: where the candidate index is kept."""

    url: Annotated[
        str,
        matching(r"sqlite:|(rediss?|unix)://.*", "sqlite: or a URL that begins with redis://, rediss:// or unix://"),
    ] = setting(
        default="sqlite:",
        description="`sqlite:` keeps the index in the ledger's file. "
        "`redis://`, `rediss://` and `unix://` name a Redis server.",
    )
    layout: Literal["documented", "compact"] = setting(
        default="documented",
        description="Layout of the Redis keys: `documented`, which other programs can read, or `compact`, "
        "which takes about half the memory or less.",
    )
