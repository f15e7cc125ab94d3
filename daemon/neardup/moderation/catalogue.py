"""The catalogues of messages in `translations`: one file for each language of the interface besides English.

    python -m neardup.moderation.catalogue

adds to every catalogue the messages that it lacks, and removes those that are no longer used.  The desk reads them as
they are, with Babel, which also writes numbers, times and the names of languages.  It offers a language once every
message has a translation: a page is never in two languages.
"""

from collections.abc import Iterator
from datetime import datetime
from functools import partial
from gettext import GNUTranslations
from http import HTTPStatus
from io import BytesIO
from pathlib import Path

from babel import Locale
from babel.dates import format_datetime, format_skeleton
from babel.messages import Catalog, Message
from babel.messages.extract import DEFAULT_KEYWORDS, extract
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po, write_po
from babel.numbers import format_decimal

from neardup.core.verify.tiers import TIERS
from neardup.moderation.interface import Interface

ROOM = Path(__file__).parent
TRANSLATIONS = ROOM / "translations"
METHODS = {".py": "python", ".j2": "jinja2"}
KEYWORDS = {**DEFAULT_KEYWORDS, "translate_later": None}
OPTIONS = {"extensions": "jinja2.ext.i18n", "trimmed": "true", "silent": "false"}
WIDTH = 120
ERRORS = (  # whose phrases are the titles of error pages
    HTTPStatus.BAD_REQUEST,
    HTTPStatus.FORBIDDEN,
    HTTPStatus.NOT_FOUND,
    HTTPStatus.METHOD_NOT_ALLOWED,
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
    HTTPStatus.MISDIRECTED_REQUEST,
    HTTPStatus.INTERNAL_SERVER_ERROR,
    HTTPStatus.SERVICE_UNAVAILABLE,
)


def list_translations() -> Iterator[Interface]:
    """The language of each complete catalogue, by code."""
    for path in sorted(TRANSLATIONS.glob("*.po")):
        with path.open("rb") as file:
            catalog = read_po(file, path.stem)
        if all(map(_is_translated, catalog)):
            yield _make_interface(catalog, Locale.parse(path.stem))


def _is_translated(message: Message) -> bool:
    return bool(message.string if isinstance(message.string, str) else all(message.string or [""]))


def _make_interface(catalog: Catalog, locale: Locale) -> Interface:
    compiled = BytesIO()
    write_mo(compiled, catalog)
    compiled.seek(0)
    return Interface(
        locale.language,
        locale.get_display_name() or locale.language,
        "rtl" if locale.text_direction == "rtl" else "ltr",
        GNUTranslations(compiled),
        partial(format_decimal, locale=locale),
        partial(_format_time, locale),
        lambda day: format_skeleton("MMMd", day, locale=locale),
        locale.languages.get,
    )


def _format_time(locale: Locale, time: str | None) -> str:
    if time is None:
        return ""
    return f"{format_datetime(datetime.fromisoformat(time), 'd MMMM y, HH:mm', locale=locale)} UTC"


def collect_messages() -> Catalog:
    """Every message that templates and modules of moderation look up, those of the tiers, and the titles of errors."""
    catalog = Catalog()
    for path in sorted(ROOM.rglob("*")):
        if method := METHODS.get(path.suffix):
            with path.open("rb") as file:
                for _, message, _, _ in extract(method, file, KEYWORDS, options=OPTIONS):
                    catalog.add(message)
    for tier in TIERS:
        catalog.add(tier.label)
        catalog.add(tier.meaning)
        catalog.add(tier.evidence)
    for status in ERRORS:
        catalog.add(status.phrase)
    return catalog


def main() -> None:
    for path in sorted(TRANSLATIONS.glob("*.po")):
        with path.open("rb") as file:
            catalog = read_po(file, path.stem)
        catalog.update(collect_messages(), no_fuzzy_matching=True, update_creation_date=False)
        with path.open("wb") as file:
            write_po(file, catalog, WIDTH, no_location=True, ignore_obsolete=True, sort_output=True)


if __name__ == "__main__":
    main()
