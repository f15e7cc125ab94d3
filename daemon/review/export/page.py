"""The pairs as one HTML page that needs nothing but itself: no script, no request, readable for years.

Written pair by pair: what is told of a pair is escaped by the template, and of a story no markup is kept.
"""

import base64
import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from daemon import __version__
from daemon.ledger import now_ms
from daemon.moments import rfc3339
from daemon.records import ISO_CODES, Kind, Language
from daemon.review.export import in_words
from daemon.review.export.pairs import Pair

HERE = Path(__file__).parent
SHOWN_PASSAGES = 3
FIRST_WORDS, LAST_WORDS = 60, 20  # what is shown of a passage longer than both
CODES = {language.value: code for code, language in ISO_CODES.items()}
CHUNKS = 64  # of the template, a write


Tally = Counter[tuple[str, str]]  # pairs by language and kind
Passages = Mapping[int, Mapping[str, Any]]  # flag -> what `compare` gives of its pair


def write_page(path: Path, pairs: Iterable[Pair], tally: Tally, passages: Passages) -> None:
    """Write the page of these pairs; `tally` counts them."""
    languages = [one for one in Language if any(one == language for language, _ in tally)]
    kinds = [one for one in Kind if any(one == kind for _, kind in tally)]
    style = _style(languages, kinds, tally)
    page = _template().stream(
        version=__version__,
        made_at=rfc3339(now_ms()),
        style=style,
        style_hash=base64.b64encode(hashlib.sha256(style.encode()).digest()).decode(),
        languages={one: sum(n for (spoken, _), n in tally.items() if spoken == one) for one in languages},
        kinds={one: sum(n for (_, found), n in tally.items() if found == one) for one in kinds},
        total=tally.total(),
        pairs=pairs,
        passages=passages,
    )
    page.enable_buffering(CHUNKS)
    with path.open("w", encoding="utf-8") as out:
        page.dump(out)


def _style(languages: list[Language], kinds: list[Kind], tally: Tally) -> str:
    """The style sheet, with the rules that make the choices of a language and a kind hide the other pairs."""
    chosen = [*(f"language-{one}" for one in languages), *(f"kind-{one}" for one in kinds)]
    rules = [f"body:has(#{one}:checked) .pair:not(.{one})" for one in chosen]
    hidden = f"{', '.join(rules)} {{ display: none }}\n" if rules else ""
    empty = [
        f"body:has(#language-{language}:checked):has(#kind-{kind}:checked) .none"
        for language, kind in product(languages, kinds)
        if not tally[language, kind]
    ]
    shown = f"{', '.join(empty)} {{ display: block }}\n" if empty else ""
    return (HERE / "page.css").read_text(encoding="utf-8") + hidden + shown


@cache
def _template() -> Any:
    environment = Environment(
        loader=FileSystemLoader(HERE), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.globals.update(
        codes=CODES,
        kinds_in_words=in_words.KINDS,
        findings=in_words.findings,
        who_was_first=in_words.who_was_first,
        excerpt=_excerpt,
        shown_passages=SHOWN_PASSAGES,
    )
    return environment.get_template("page.html.j2")


def _excerpt(text: str) -> tuple[str, str]:
    """A passage's beginning and, where it is long, its end."""
    words = text.split()
    if len(words) <= FIRST_WORDS + LAST_WORDS:
        return " ".join(words), ""
    return " ".join(words[:FIRST_WORDS]), " ".join(words[-LAST_WORDS:])
