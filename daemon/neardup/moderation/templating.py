"""Pages for moderators, from the templates and the style sheet beside this file."""

import base64
import hashlib
import re
from dataclasses import dataclass
from datetime import datetime
from functools import cache, partial
from importlib.resources import files

from jinja2 import Environment, PackageLoader, StrictUndefined

from neardup.core.verify.tiers import tier_of
from neardup.languages import Languages
from neardup.moderation.wording import evidence, percent
from neardup.records import Language

# Controls, what turns the direction of writing for all that follows, annotations, halves of code points.
UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ufff9-\ufffb\ud800-\udfff]")
LAST_PICTURED = 0x1F  # Unicode has pictures of these: U+2400 and on


@dataclass(frozen=True, slots=True)
class Inlined:
    """What a page holds that needs nothing but itself: its style, its script, and the policy that allows only these."""

    style: str
    script: str
    policy: str


@cache
def environment(languages: Languages) -> Environment:
    """The templates, for texts in these languages.

    A page that is served finds the style sheets and the script under /static.
    """
    made = Environment(
        loader=PackageLoader("neardup.moderation"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= FILTERS
    made.globals |= GLOBALS | {"code_of": partial(code_of, languages), "direction_of": partial(direction_of, languages)}
    return made


def code_of(languages: Languages, language: Language | None) -> str:
    """The `lang` of a text; "" where its language is not known."""
    entry = languages.get(language) if language else None
    return entry.code if entry else ""


def direction_of(languages: Languages, language: Language | None) -> str:
    """The `dir` of a text: `auto` leaves it to the browser, which goes by the first letter."""
    entry = languages.get(language) if language else None
    return "rtl" if entry and entry.direction == "rtl" else "auto"


def font_rules(languages: Languages) -> str:
    """The style sheet that has each language's texts shown in its fonts."""
    return "".join(
        f":lang({entry.code}) {{ --story: {', '.join(f'{chr(34)}{font}{chr(34)}' for font in entry.fonts)}, serif; }}\n"
        for entry in languages.values()
        if entry.fonts
    )


def visible(text: object) -> str:
    """Text with nothing in it that a reader does not see but the page around it would feel."""
    return UNSEEN.sub(_picture, str(text))


def _picture(found: re.Match[str]) -> str:
    code = ord(found[0])
    if code <= LAST_PICTURED:
        return chr(0x2400 + code)
    return "\ufffd" if 0xD800 <= code < 0xE000 else f"[U+{code:04X}]"


def moment(rfc3339: str) -> str:
    """2026-11-20T02:00:00Z -> 20 November 2026, 02:00 UTC."""
    when = datetime.fromisoformat(rfc3339)
    return f"{when.day} {when:%B %Y, %H:%M} UTC"


@cache
def inlined(languages: Languages) -> Inlined:
    """The style sheet and the script, to be held by a page itself."""
    static = files("neardup.moderation") / "static"
    style, script = ((static / name).read_text(encoding="utf-8") for name in ("review.css", "review.js"))
    style += font_rules(languages)
    allowed = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in (style, script)]
    policy = f"default-src 'none'; style-src 'sha256-{allowed[0]}'; script-src 'sha256-{allowed[1]}'"
    return Inlined(style, script, policy)


FILTERS = {
    "visible": visible,
    "percent": lambda share: percent(share).replace(" ", "\N{NO-BREAK SPACE}"),
    "moment": moment,
    "evidence": lambda row: evidence(row).replace(" %", "\N{NO-BREAK SPACE}%"),
}
# What a page goes by that is given nothing else: see base.html.j2, passages.html.j2, cluster.html.j2, evidence.html.j2.
GLOBALS = {"inlined": None, "story_url": None, "layout": "base.html.j2", "tier_of": tier_of}
