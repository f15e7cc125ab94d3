"""The base class of every section of the configuration."""

from pydantic import BaseModel, ConfigDict


class Section(BaseModel):
    """One table of config.toml.  Each key is a field, and its description is its row in the documentation."""

    model_config = ConfigDict(frozen=True, extra="forbid")
