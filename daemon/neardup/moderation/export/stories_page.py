"""Exports of stories as one self-contained HTML page, without scripts and without requests."""

import base64
import hashlib
from collections.abc import Iterable
from importlib.resources import files
from itertools import groupby
from operator import itemgetter
from pathlib import Path

from neardup import __version__
from neardup.languages import Languages
from neardup.ledger import now_ms
from neardup.moderation.export.table import ExportRow
from neardup.moderation.templating import environment, font_rules
from neardup.records import rfc3339

MAX_STORIES_SHOWN = 5000


def write_stories_page(path: Path, stories: Iterable[ExportRow], chosen: int, *, registry: Languages) -> None:
    """Write the page of these stories that copy, the first of `chosen` that were selected."""
    _write(path, "stories.html.j2", registry, stories=list(stories), chosen=chosen)


def write_members_page(path: Path, members: Iterable[ExportRow], chosen: int, *, registry: Languages) -> None:
    """Write the page of these members of clusters, the first of `chosen` that were selected."""
    shown = list(members)
    clusters = [list(rows) for _, rows in groupby(shown, itemgetter("cluster_id"))]
    _write(path, "members.html.j2", registry, clusters=clusters, shown=len(shown), chosen=chosen)


def _write(path: Path, template: str, registry: Languages, **values: object) -> None:
    style = _style() + font_rules(registry)
    page = (
        environment(registry)
        .get_template(template)
        .render(
            version=__version__,
            made_at=rfc3339(now_ms()),
            style=style,
            style_hash=base64.b64encode(hashlib.sha256(style.encode()).digest()).decode(),
            **values,
        )
    )
    path.write_text(page, encoding="utf-8")


def _style() -> str:
    static = files("neardup.moderation") / "static"
    return "".join((static / name).read_text(encoding="utf-8") for name in ("review.css", "export.css"))
