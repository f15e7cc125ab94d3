"""The configuration: config.toml and NEARDUP_<SECTION>__<KEY> variables, as frozen sections."""

from neardup.config.detection import Detection, Thresholds
from neardup.config.loading import Config, load
from neardup.config.sections import (
    Content,
    Export,
    Extract,
    Index,
    Ledger,
    Meaning,
    Metrics,
    Reference,
    Review,
    Run,
    Serve,
    Source,
)

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
