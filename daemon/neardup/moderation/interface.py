"""The language of the interface, in which wording and templates speak.

It is English unless the desk has set another one for a request, so that commands and exports always speak English.
"""

from collections.abc import Callable
from contextvars import ContextVar
from datetime import date
from gettext import NullTranslations
from typing import Literal

from msgspec import Struct

from neardup.records import format_readable_time


class Interface(Struct, frozen=True):
    """A language of the interface: its BCP 47 code, its own name, its messages, and how it writes what has no message.

    `number` writes an integer, `time` a time in RFC 3339 (None as ""), `day` the day and the month of a date, and
    `language` the name of the language with an ISO 639 code, None if it has no name for it.
    """

    code: str
    name: str
    direction: Literal["ltr", "rtl"]
    messages: NullTranslations
    number: Callable[[int], str]
    time: Callable[[str | None], str]
    day: Callable[[date], str]
    language: Callable[[str], str | None]


ENGLISH = Interface(
    "en",
    "English",
    "ltr",
    NullTranslations(),
    "{:,}".format,
    format_readable_time,
    "{:%d %b}".format,
    lambda _code: None,
)
CURRENT = ContextVar("interface", default=ENGLISH)


def gettext(message: str, **values: object) -> str:
    """The message in the language of the interface, with these values for its %(name)s."""
    translated = CURRENT.get().messages.gettext(message)
    return translated % values if values else translated


def ngettext(singular: str, plural: str, count: int, **values: object) -> str:
    """The message for so many things in the language of the interface, with these values for its %(name)s."""
    translated = CURRENT.get().messages.ngettext(singular, plural, count)
    return translated % values if values else translated


def translate_later(message: str) -> str:
    """The message as it is: a call marks, for `catalogue`, a constant that is translated where it is used."""
    return message


def number(n: int) -> str:
    """An integer with its digits grouped."""
    return CURRENT.get().number(n)
