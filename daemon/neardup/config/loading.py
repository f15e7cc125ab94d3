"""Reading config.toml, overridden by environment variables NEARDUP_<SECTION>__<KEY>."""

import tomllib
from functools import cached_property
from pathlib import Path
from typing import Any

from neardup.config.content import Content
from neardup.config.detection import Detection
from neardup.config.environment import overridden
from neardup.config.export import Export
from neardup.config.extract import Extract
from neardup.config.index import Index
from neardup.config.languages import Tables, registry
from neardup.config.ledger import Ledger
from neardup.config.meaning import Meaning
from neardup.config.metrics import Metrics
from neardup.config.reference import Reference
from neardup.config.review import Review
from neardup.config.run import Run
from neardup.config.section import Section, Wrong, in_words, read, setting
from neardup.config.serve import Serve
from neardup.config.source import Source
from neardup.errors import Misuse
from neardup.languages import Languages


class Config(Section):
    """The whole configuration, one key a section."""

    source: Source
    content: Content
    extract: Extract = Extract()
    reference: Reference | None = None
    index: Index = Index()
    ledger: Ledger = Ledger()
    languages: Tables = setting(
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

    @classmethod
    def prepared(cls, table: dict[str, Any]) -> dict[str, Any]:
        """Replace the names and codes in [detection.LANGUAGE] by the names of registered languages."""
        detection = table.get("detection")
        if not isinstance(detection, dict):
            return table
        try:
            find = registry(read(Tables, table.get("languages", {}))).find
            named = dict[str, Any]()
            for key, value in detection.items():
                name = find(key) if isinstance(value, dict) else key
                named[name] = {**named.get(name, {}), **value} if isinstance(value, dict) else value
        except Wrong:  # of [languages], which is reported as such
            return table
        except ValueError as error:
            raise Wrong([(("detection",), str(error))]) from None
        return {**table, "detection": named}


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
    except Wrong as error:
        raise Misuse("; ".join(f"{path}: {in_words(fault)}" for fault in error.faults)) from None


def _anchored(config: Config, folder: Path) -> Config:
    """Make every relative path absolute, starting from `folder`."""

    def at(path: Path | None) -> Path | None:
        return folder / path if path else None

    def content_at(content: Content) -> Content:
        scheme, _, rest = content.url.partition(":")
        if scheme not in ("file", "texts"):
            return content
        return content.replaced(url=f"{scheme}:{folder / rest.removeprefix('//')}")

    target, reference, meaning = config.export.path, config.reference, config.meaning
    if reference is not None:
        reference = reference.replaced(manifest=at(reference.manifest), content=content_at(reference.content))
    if meaning is not None:
        meaning = meaning.replaced(folder=at(meaning.folder))
    return config.replaced(
        source=config.source.replaced(manifest=at(config.source.manifest)),
        content=content_at(config.content),
        reference=reference,
        meaning=meaning,
        ledger=config.ledger.replaced(path=at(config.ledger.path)),
        serve=config.serve.replaced(tokens=at(config.serve.tokens)),
        export=config.export.replaced(path=at(target) if isinstance(target, Path) else target),
    )
