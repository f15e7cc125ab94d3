"""The configuration: config.toml and NEARDUP_<SECTION>__<KEY> variables, as frozen sections, one module a section."""

from neardup.config.content import Content
from neardup.config.detection import Detection, Thresholds
from neardup.config.export import Export
from neardup.config.extract import Extract
from neardup.config.index import Index
from neardup.config.ledger import Ledger
from neardup.config.loading import Config, load
from neardup.config.meaning import Meaning
from neardup.config.metrics import Metrics
from neardup.config.reference import Reference
from neardup.config.review import Review
from neardup.config.run import Run
from neardup.config.serve import Serve
from neardup.config.source import Source

__all__ = [
    "Config",
    "Content",
    "Detection",
    "Export",
    "Extract",
    "Index",
    "Ledger",
    "Meaning",
    "Metrics",
    "Reference",
    "Review",
    "Run",
    "Serve",
    "Source",
    "Thresholds",
    "load",
]
