"""config.toml, overridden by NEARDUP_<SECTION>__<KEY>, as frozen sections.

Relative paths are relative to the folder of the file that names them.  Each part of the daemon is
given its own section only.
"""

import os
import tomllib
from collections.abc import Iterable
from datetime import time, timedelta
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import BeforeValidator, Field, ValidationError, ValidationInfo, field_validator, model_validator
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict, SettingsError

from neardup.config.export_formats import Format, Target, format_of, target_of
from neardup.config.languages import LanguageTable, Name, by_name, registry
from neardup.config.listen import Metrics, Review, Section
from neardup.core.candidates.banding import MAX_SKETCH_BANDS, Banding, groups
from neardup.core.fingerprint.minhash import ROWS
from neardup.core.text.html import Extraction
from neardup.errors import Misuse
from neardup.languages import Languages
from neardup.records import Language
from neardup.schedule import Daily, Schedule, duration, parse_schedule

PREFIX = "NEARDUP_"
Duration = Annotated[timedelta, BeforeValidator(duration)]


class Source(Section):
    """[source]: who lists the stories."""

    kind: Literal["manifest", "athena"] = "manifest"
    manifest: Path | None = None
    database: str = ""
    workgroup: str = "primary"
    output: str = ""
    backfill_sql: str = ""
    daily_sql: str = ""

    @model_validator(mode="after")
    def _complete(self) -> Self:
        needed = ("manifest",) if self.kind == "manifest" else ("database", "output", "backfill_sql", "daily_sql")
        missing = [name for name in needed if not getattr(self, name)]
        if missing:
            raise ValueError(f'kind = "{self.kind}" needs {" and ".join(missing)}')
        if self.kind == "athena" and "?" not in self.daily_sql:
            raise ValueError("daily_sql needs a ? where the watermark goes")
        return self


class Content(Section):
    """[content]: the object store that holds the pages."""

    url: str
    key: str = "{language}/{id}.html"
    endpoint: Annotated[str, Field(pattern=r"^https?://[^@\s]+$")] | None = None
    region: str | None = None
    path_style: bool = False
    max_bytes: int = Field(default=5_000_000, gt=0)

    @model_validator(mode="after")
    def _known(self) -> Self:
        if urlsplit(self.url).scheme not in ("file", "s3"):
            raise ValueError(f"url: {self.url!r} is neither file:PATH nor s3://BUCKET/PREFIX")
        try:
            self.key.format(language="HINDI", id=1)
        except (LookupError, ValueError, TypeError, AttributeError):
            raise ValueError(f"key: {self.key!r} may hold {{language}} and {{id}}, nothing else in braces") from None
        return self


class Extract(Section):
    """[extract]: what of a page is the story."""

    body: str = ""
    strip: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _parses(self) -> Self:
        Extraction(self.body, self.strip)
        return self


class Index(Section):
    """[index]: where the LSH index lives."""

    url: Annotated[str, Field(pattern=r"^(sqlite:$|redis://|rediss://|unix://)")] = "sqlite:"
    layout: Literal["documented", "compact"] = "documented"


class Ledger(Section):
    """[ledger]: the SQLite file that is the truth."""

    path: Path = Path("var/neardup.db")


class Thresholds(Section):
    """What counts as a copy, for one language."""

    hamming: int = 3
    bands: int = Field(default=MAX_SKETCH_BANDS, ge=1, le=MAX_SKETCH_BANDS)
    shared_bands: int = Field(default=2, ge=1)
    agreeing_rows: int = Field(default=10, ge=0, le=ROWS)
    jaccard: float = Field(default=0.5, gt=0, le=1)
    containment: float = Field(default=0.5, gt=0, le=1)
    max_matches: int = Field(default=50, gt=0)
    max_bucket: int = Field(default=5000, gt=0)

    @model_validator(mode="after")
    def _guaranteed(self) -> Self:
        groups(self.hamming)
        if self.shared_bands > self.bands:
            raise ValueError(f"shared_bands: {self.shared_bands} of {self.bands} bands cannot be shared")
        return self


class Detection(Thresholds):
    """[detection] and its [detection.<LANGUAGE>] tables."""

    languages: dict[Language, Thresholds] = Field(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _split(cls, data: Any) -> Any:
        if not isinstance(data, dict) or "languages" in data:
            return data
        common: dict[str, Any] = {}
        tables: dict[Language, dict[str, Any]] = {}
        for key, value in data.items():
            if isinstance(value, dict):
                language = Language(key)
                tables[language] = {**tables.get(language, {}), **value}
            else:
                common[key] = value
        return {**common, "languages": {language: {**common, **table} for language, table in tables.items()}}

    def of(self, language: Language) -> Thresholds:
        return self.languages.get(language, self)

    def banding(self, language: Language) -> Banding:
        own = self.of(language)
        return Banding(own.hamming, own.bands, own.shared_bands, own.max_bucket)

    def bandings(self, languages: Iterable[Language]) -> dict[Language, Banding]:
        return {language: self.banding(language) for language in languages}


class Run(Section):
    """[run]: the pipeline and its schedule."""

    workers: int = Field(default=64, gt=0, le=4096)
    queue: int = Field(default=256, gt=0, le=100_000)
    batch: int = Field(default=256, gt=0, le=2000)
    schedule: Annotated[Schedule, BeforeValidator(parse_schedule)] = Daily(at=time(2))
    overlap: Duration = timedelta(hours=1)
    shutdown_seconds: float = Field(default=20, gt=0)
    breaker_share: float = Field(default=0.05, ge=0, le=1)
    breaker_after: int = Field(default=1000, gt=0)


class Export(Section):
    """[export]: what a run leaves for the moderators."""

    path: Annotated[Target | None, BeforeValidator(target_of)] = None
    format: Format | None = None
    webhook: Annotated[str, Field(pattern=r"^(https?://[^/\s]\S*)?$")] = ""

    @property
    def path_format(self) -> Format:
        """The format of the file at `path`: the one that is named, or else what its ending tells."""
        return self.format or (format_of(self.path) if self.path else None) or "csv"


class Config(BaseSettings):
    """The whole configuration."""

    model_config = SettingsConfigDict(
        frozen=True, extra="forbid", env_prefix=PREFIX, env_nested_delimiter="__", arbitrary_types_allowed=True
    )

    source: Source
    content: Content
    extract: Extract = Extract()
    index: Index = Index()
    ledger: Ledger = Ledger()
    languages: dict[Name, LanguageTable] = Field(default_factory=dict)
    detection: Detection = Detection()
    run: Run = Run()
    metrics: Metrics = Metrics()
    review: Review = Review()
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
        """[detection.<LANGUAGE>] by the names of registered languages, whatever name or code it has in the file."""
        if not isinstance(data, dict) or "languages" not in info.data:
            return data
        find, named = registry(info.data["languages"]).find, dict[str, Any]()
        for key, value in data.items():
            name = find(key) if isinstance(value, dict) else key
            named[name] = {**named.get(name, {}), **value} if isinstance(value, dict) else value
        return named

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        return env_settings, init_settings


def load(path: Path) -> Config:
    """Read and check the configuration.  Raises Misuse, one line for each thing that is wrong."""
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise Misuse(f"cannot read the configuration {path}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise Misuse(f"{path}: bad TOML: {error}") from error
    sections = {f"{PREFIX}{name}__".upper() for name in Config.model_fields}
    for name in os.environ:
        if name.startswith(PREFIX) and not any(name.upper().startswith(section) for section in sections):
            raise Misuse(f"unknown variable {name}: write {PREFIX}<SECTION>__<KEY>")
    try:
        return _anchored(Config(**tables), path.parent.absolute())
    except SettingsError as error:
        raise Misuse(f"{error}: write it as JSON") from None
    except ValidationError as error:
        raise Misuse("; ".join(f"{path}: {_explain(dict(e))}" for e in error.errors())) from None


def _explain(error: dict[str, Any]) -> str:
    where = ".".join(str(part) for part in error["loc"])
    said = "unknown key" if error["type"] == "extra_forbidden" else str(error["msg"]).removeprefix("Value error, ")
    return f"{where}: {said}" if where else said


def _anchored(config: Config, folder: Path) -> Config:
    def at(path: Path | None) -> Path | None:
        return folder / path if path else None

    url, target = config.content.url, config.export.path
    if url.startswith("file:"):
        url = f"file:{folder / url.removeprefix('file://').removeprefix('file:')}"
    return config.model_copy(
        update={
            "source": config.source.model_copy(update={"manifest": at(config.source.manifest)}),
            "content": config.content.model_copy(update={"url": url}),
            "ledger": config.ledger.model_copy(update={"path": at(config.ledger.path)}),
            "export": config.export.model_copy(update={"path": at(target) if isinstance(target, Path) else target}),
        }
    )
