"""The Jinja environment of the pages for moderators, with its filters and globals."""

import base64
import hashlib
import re
import unicodedata
from collections.abc import Mapping
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markupsafe import Markup
from msgspec import Struct

from neardup import __version__
from neardup.core.languages import Languages
from neardup.core.verify.tiers import find_tier
from neardup.ledger import now_ms
from neardup.moderation import wording
from neardup.moderation.interface import CURRENT, gettext, ngettext, number
from neardup.records import Language, format_percent, format_time

if TYPE_CHECKING:
    from jinja2 import Environment

STATIC = Path(__file__).parent / "static"
# Control characters, bidirectional formatting, interlinear annotation, and lone surrogates.
INVISIBLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ufff9-\ufffb\ud800-\udfff]")
RIGHT_TO_LEFT = {"R", "AL", "AN"}
STAND_INS = re.compile("([\ue000-\ue002])")  # for names in a sentence that is not made yet
LAST_C0_CONTROL = 0x1F  # Unicode has a visible symbol for each of these, from U+2400 on


class InlineAssets(Struct, frozen=True):
    """The style and the script of a self-contained page, and the Content Security Policy that allows only these."""

    style: str
    script: str
    policy: str


@cache
def make_environment(languages: Languages) -> "Environment":
    """The Jinja environment for texts in these languages.

    The server serves the style sheets and the script of a page under /static.
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined  # noqa: PLC0415 - most exports make no page

    jinja = Environment(
        loader=PackageLoader("neardup.moderation"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        extensions=["jinja2.ext.i18n"],
    )
    jinja.policies["ext.i18n.trimmed"] = True
    jinja.filters |= FILTERS
    jinja.globals |= GLOBALS
    jinja.globals |= {"code_of": partial(code_of, languages), "direction_of": partial(direction_of, languages)}
    jinja.globals["language_name"] = partial(language_name, languages)
    return jinja


def code_of(languages: Languages, language: Language | None) -> str:
    """The value of `lang` for a text; "" if its language is unknown."""
    entry = languages.get(language) if language else None
    return entry.code if entry else ""


def direction_of(languages: Languages, language: Language | None) -> str:
    """The value of `dir` for a text; with `auto`, browsers follow the first letter with a direction."""
    entry = languages.get(language) if language else None
    return "rtl" if entry and entry.direction == "rtl" else "auto"


def language_name(languages: Languages, language: Language) -> str:
    """The name of a language in the language of the interface, or as it is registered."""
    return CURRENT.get().language(code_of(languages, language)) or language.title()


def make_font_rules(languages: Languages) -> str:
    """The CSS rules that set the fonts of each language."""
    return "".join(
        f":lang({entry.code}) {{ --story: {', '.join(f'{chr(34)}{font}{chr(34)}' for font in entry.fonts)}, serif; }}\n"
        for entry in languages.values()
        if entry.fonts
    )


def make_visible(text: object) -> str:
    """Text in which invisible characters that could disturb the page are replaced by visible ones."""
    return INVISIBLE.sub(_replace_invisible, str(text))


def isolate(name: object) -> str:
    """Visible text that keeps the order of what stands around it, also if it is written from right to left."""
    text = make_visible(name)
    if any(unicodedata.bidirectional(letter) in RIGHT_TO_LEFT for letter in text):
        return Markup("<bdi>{}</bdi>").format(text)
    return text


def order_of_row(row: Mapping[str, Any]) -> str:
    """The sentence of `describe_row_order`, with its names isolated."""
    names = {
        "\ue000": row["matched_name"] or row["matched_id"],
        "\ue001": row["story_name"] or row["story_id"],
        "\ue002": row["catalogue"],
    }
    first, second, catalogue = names
    stand_ins = {"matched_name": first, "story_name": second, "catalogue": row["catalogue"] and catalogue}
    sentence = wording.describe_row_order({**row, **stand_ins})
    return Markup("").join(isolate(names[part]) if part in names else part for part in STAND_INS.split(sentence))


def _replace_invisible(found: re.Match[str]) -> str:
    code = ord(found[0])
    if code <= LAST_C0_CONTROL:
        return chr(0x2400 + code)
    return "\ufffd" if 0xD800 <= code < 0xE000 else f"[U+{code:04X}]"


def read_static(*names: str) -> str:
    """The text of some files of the folder `static`, one after the other."""
    return "".join((STATIC / name).read_text(encoding="utf-8") for name in names)


def hash_for_csp(text: str) -> str:
    """The SHA-256 by which a Content Security Policy allows an inline style or script, in base64."""
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def make_page_values(style: str) -> dict[str, Any]:
    """What every self-contained page shows of itself: version, time, and its one style with the hash that allows it."""
    return {"version": __version__, "made_at": format_time(now_ms()), "style": style, "style_hash": hash_for_csp(style)}


@cache
def load_assets(languages: Languages) -> InlineAssets:
    style, script = read_static("review.css") + make_font_rules(languages), read_static("review.js")
    policy = f"default-src 'none'; style-src 'sha256-{hash_for_csp(style)}'; script-src 'sha256-{hash_for_csp(script)}'"
    return InlineAssets(style, script, policy)


FILTERS = {
    "rfc3339": format_time,
    "visible": make_visible,
    "isolate": isolate,
    "percent": lambda share: format_percent(share).replace(" ", "\N{NO-BREAK SPACE}"),
    "readable_time": lambda time: CURRENT.get().time(time),
    "evidence": lambda row: wording.describe_signals(row).replace(" %", "\N{NO-BREAK SPACE}%"),
}
# Defaults for the templates' variables; a page may pass its own.
GLOBALS: dict[str, Any] = {
    "inline_assets": None,
    "story_url": None,
    "author_url": None,
    "histories": {},
    "here": None,
    "layout": "base.html.j2",
    "interface": CURRENT.get,
    "gettext": gettext,
    "ngettext": ngettext,
    "number": number,
    "wording": wording,
    "tier_of": find_tier,
    "describe_row_order": order_of_row,
}
