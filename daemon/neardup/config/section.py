"""The base class of every section of the configuration, and what several of them check."""

import re
from collections.abc import Iterable

from pydantic import AfterValidator, BaseModel, ConfigDict


class Section(BaseModel):
    """One table of config.toml.  Each key is a field, and its description is its row in the documentation."""

    model_config = ConfigDict(frozen=True, extra="forbid")


def matching(pattern: str, meaning: str) -> AfterValidator:
    """A check that a whole value matches a pattern; the error does not show the value, which may have a password."""

    def check(value: str) -> str:
        if not re.fullmatch(pattern, value):
            raise ValueError(f"must be {meaning}")
        return value

    return AfterValidator(check)


def refuse_missing(section: Section, kind: str, needed: Iterable[str]) -> None:
    """Raise ValueError if keys that this `kind` of a section needs have no value."""
    if missing := [name for name in needed if not getattr(section, name)]:
        raise ValueError(f'kind = "{kind}" needs {" and ".join(missing)}')
