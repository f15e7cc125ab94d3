"""The base class of every section of the configuration, and what several of them check."""

from collections.abc import Iterable

from pydantic import BaseModel, ConfigDict


class Section(BaseModel):
    """One table of config.toml.  Each key is a field, and its description is its row in the documentation."""

    model_config = ConfigDict(frozen=True, extra="forbid")


def refuse_missing(section: Section, kind: str, needed: Iterable[str]) -> None:
    """Raise ValueError if keys that this `kind` of a section needs have no value."""
    if missing := [name for name in needed if not getattr(section, name)]:
        raise ValueError(f'kind = "{kind}" needs {" and ".join(missing)}')
