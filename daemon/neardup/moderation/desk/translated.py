"""The languages of the desk's interface besides English, as Babel and the catalogues in `translations` make them."""

from collections.abc import Iterator
from datetime import datetime
from functools import partial
from gettext import GNUTranslations
from importlib.resources import files
from io import BytesIO

from babel import Locale
from babel.dates import format_datetime, format_skeleton
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po
from babel.numbers import format_decimal

from neardup.moderation.interface import Interface

TRANSLATIONS = files("neardup.moderation") / "translations"


def translated() -> Iterator[Interface]:
    """The language of each catalogue, by code."""
    yield from map(_interface, sorted(file.name for file in TRANSLATIONS.iterdir() if file.name.endswith(".po")))


def _interface(name: str) -> Interface:
    locale = Locale.parse(name.removesuffix(".po"))
    compiled = BytesIO()
    with (TRANSLATIONS / name).open("rb") as file:
        write_mo(compiled, read_po(file, locale))
    compiled.seek(0)
    return Interface(
        locale.language,
        locale.get_display_name() or locale.language,
        "rtl" if locale.text_direction == "rtl" else "ltr",
        GNUTranslations(compiled),
        partial(format_decimal, locale=locale),
        partial(_time, locale),
        lambda day: format_skeleton("MMMd", day, locale=locale),
        locale.languages.get,
    )


def _time(locale: Locale, time: str | None) -> str:
    if time is None:
        return ""
    return f"{format_datetime(datetime.fromisoformat(time), 'd MMMM y, HH:mm', locale=locale)} UTC"
