"""Reading config.toml, overridden by environment variables NEARDUP_<SECTION>__<KEY>."""

import tomllib
from functools import cached_property
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, ValidationInfo, field_validator

from neardup.config.content import Content
from neardup.config.detection import Detection
from neardup.config.environment import overridden
from neardup.config.export import Export
from neardup.config.extract import Extract
from neardup.config.index import Index
from neardup.config.languages import LanguageTable, Name, by_name, registry
from neardup.config.ledger import Ledger
from neardup.config.meaning import Meaning
from neardup.config.metrics import Metrics
from neardup.config.reference import Reference
from neardup.config.review import Review
from neardup.config.run import Run
from neardup.config.serve import Serve
from neardup.config.source import Source
from neardup.errors import Misuse
from neardup.languages import Languages


class Config(BaseModel):
    """The whole configuration, one field a section."""

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)

    source: Source
    content: Content
    extract: Extract = Extract()
    reference: Reference | None = None
    index: Index = Index()
    ledger: Ledger = Ledger()
    languages: dict[Name, LanguageTable] = Field(
        default_factory=dict, description="Languages to add to those that the package ships, or to change."
    )
    detection: Detection = Detection()
    run: Run = Run()
    meaning: Meaning | None = None
    metrics: Metrics = Metrics()
    review: Review = Review()
    serve: Serve = Serve()
    export: Export = Export()

    @cached_property
    def registry(self) -> Languages:
        """The languages that the package ships and those of [languages]."""
        return registry(self.languages)

    _by_name = field_validator("languages", mode="before")(by_name)

    @field_validator("languages")
    @classmethod
    def _fit_together(cls, tables: dict[Name, LanguageTable]) -> dict[Name, LanguageTable]:
        registry(tables)
        return tables

    @field_validator("detection", mode="before")
    @classmethod
    def _of_languages(cls, data: Any, info: ValidationInfo) -> Any:
        """Replace the names and codes in [detection.LANGUAGE] by the names of registered languages."""
        if not isinstance(data, dict) or "languages" not in info.data:
            return data
        find, named = registry(info.data["languages"]).find, dict[str, Any]()
        for key, value in data.items():
            name = find(key) if isinstance(value, dict) else key
            named[name] = {**named.get(name, {}), **value} if isinstance(value, dict) else value
        return named


def load(path: Path) -> Config:
    """Read and validate the configuration.  Relative paths in it are relative to the folder of the file.

    Raises Misuse, whose message names every wrong key.
    """
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise Misuse(f"cannot read the configuration {path}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise Misuse(f"{path}: bad TOML: {error}") from error
    tables = overridden(tables, Config)
    try:
        return _anchored(Config(**tables), path.parent.absolute())
    except ValidationError as error:
        raise Misuse("; ".join(f"{path}: {_explain(dict(e))}" for e in error.errors())) from None


def _explain(error: dict[str, Any]) -> str:
    where = ".".join(str(part) for part in error["loc"])
    message = "unknown key" if error["type"] == "extra_forbidden" else str(error["msg"]).removeprefix("Value error, ")
    return f"{where}: {message}" if where else message


def _anchored(config: Config, folder: Path) -> Config:
    """Make every relative path absolute, starting from `folder`."""

    def at(path: Path | None) -> Path | None:
        return folder / path if path else None

    def content_at(content: Content) -> Content:
        scheme, _, rest = content.url.partition(":")
        if scheme not in ("file", "texts"):
            return content
        return content.model_copy(update={"url": f"{scheme}:{folder / rest.removeprefix('//')}"})

    target, reference, meaning = config.export.path, config.reference, config.meaning
    if reference is not None:
        anchored = {"manifest": at(reference.manifest), "content": content_at(reference.content)}
        reference = reference.model_copy(update=anchored)
    if meaning is not None:
        meaning = meaning.model_copy(update={"folder": at(meaning.folder)})
    return config.model_copy(
        update={
            "source": config.source.model_copy(update={"manifest": at(config.source.manifest)}),
            "content": content_at(config.content),
            "reference": reference,
            "meaning": meaning,
            "ledger": config.ledger.model_copy(update={"path": at(config.ledger.path)}),
            "serve": config.serve.model_copy(update={"tokens": at(config.serve.tokens)}),
            "export": config.export.model_copy(update={"path": at(target) if isinstance(target, Path) else target}),
        }
    )
