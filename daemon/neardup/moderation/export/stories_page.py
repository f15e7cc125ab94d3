"""The export by story as one self-contained HTML page, without scripts and without requests."""

import base64
import hashlib
from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from neardup import __version__
from neardup.languages import Languages
from neardup.ledger import now_ms
from neardup.moderation.export.table import ExportRow
from neardup.moderation.templating import environment, font_rules
from neardup.timestamps import rfc3339

TEMPLATE = "stories.html.j2"
MAX_STORIES_SHOWN = 5000


def write_stories_page(path: Path, stories: Iterable[ExportRow], chosen: int, *, registry: Languages) -> None:
    """Write the page of these stories, the first of `chosen` that were selected."""
    shown = list(stories)
    style = _style() + font_rules(registry)
    page = _template(registry).render(
        version=__version__,
        made_at=rfc3339(now_ms()),
        style=style,
        style_hash=base64.b64encode(hashlib.sha256(style.encode()).digest()).decode(),
        stories=shown,
        chosen=chosen,
    )
    path.write_text(page, encoding="utf-8")


def _style() -> str:
    static = files("neardup.moderation") / "static"
    return "".join((static / name).read_text(encoding="utf-8") for name in ("review.css", "export.css"))


@cache
def _template(languages: Languages) -> Any:
    return environment(languages).get_template(TEMPLATE)
