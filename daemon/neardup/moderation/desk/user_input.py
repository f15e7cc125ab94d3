"""What people type, made fit to be kept and shown."""

import re
import unicodedata
from urllib.parse import quote, unquote

from aiohttp import web

from neardup.moderation.desk.sessions import set_cookie

NAME_COOKIE = "neardup_name"
NAME_SECONDS = 365 * 86_400
MAX_NAME_LENGTH = 60  # characters
MAX_NOTE_LENGTH = 2_000
JOINERS = "\u200c\u200d"  # a part of how names are written in many scripts
LOCAL_PATH = re.compile(r"/(?![/\\])[^\s\\]*")


def clean_name(typed: str) -> str:
    """A person's name on one line; "" for what is none."""
    return " ".join(_visible(typed, JOINERS).split())[:MAX_NAME_LENGTH].strip()


def clean_note(typed: str) -> str:
    """A note without what cannot be seen, its lines ended as everywhere else.  May be longer than MAX_NOTE_LENGTH."""
    return _visible(re.sub(r"\r\n?", "\n", typed), JOINERS + "\n\t").strip()


def _visible(typed: str, kept: str) -> str:
    """Without controls, and without what turns the direction of writing for all that follows."""
    text = unicodedata.normalize("NFC", typed)
    return "".join(
        letter for letter in text if letter in kept or unicodedata.category(letter) not in ("Cc", "Cf", "Cs")
    )


def local_path(address: str) -> str:
    """An address of this desk, to go back to; its first page for any other."""
    return address if LOCAL_PATH.fullmatch(address) else "/"


def moderator_name(request: web.Request) -> str:
    """The name that this browser's moderator gave; "" for one who was not asked yet."""
    return clean_name(unquote(request.cookies.get(NAME_COOKIE, "")))


def set_name_cookie(answer: web.Response, name: str) -> None:
    set_cookie(answer, NAME_COOKIE, quote(name), NAME_SECONDS)
