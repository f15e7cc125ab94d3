"""Cleaning of user input: names, notes and addresses."""

import re
import unicodedata
from urllib.parse import quote

from aiohttp import web

from neardup.moderation.desk.sessions import set_cookie

NAME_COOKIE = "neardup_name"
NAME_SECONDS = 365 * 86_400
MAX_NAME_LENGTH = 60  # characters
MAX_NOTE_LENGTH = 2_000
JOINERS = "\u200c\u200d"  # zero-width (non-)joiners, which names in many scripts need
LOCAL_PATH = re.compile(r"/(?![/\\])[^\s\\]*")


def clean_name(text: str) -> str:
    """A name on one line; "" if the input has no visible character."""
    return " ".join(_visible(text, JOINERS).split())[:MAX_NAME_LENGTH].strip()


def clean_note(text: str) -> str:
    """A note without invisible characters and with \\n as line ends.  It may exceed MAX_NOTE_LENGTH."""
    return _visible(re.sub(r"\r\n?", "\n", text), JOINERS + "\n\t").strip()


def _visible(text: str, kept: str) -> str:
    """NFC without control, format and surrogate characters other than those in `kept`."""
    normalized = unicodedata.normalize("NFC", text)
    return "".join(
        character
        for character in normalized
        if character in kept or unicodedata.category(character) not in ("Cc", "Cf", "Cs")
    )


def local_path(address: str) -> str:
    """The address if it is a path of this desk, else "/"."""
    return address if LOCAL_PATH.fullmatch(address) else "/"


def set_name_cookie(request: web.Request, response: web.Response, name: str) -> None:
    set_cookie(request, response, NAME_COOKIE, quote(name), NAME_SECONDS)
