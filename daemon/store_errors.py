"""What the object store says is wrong -> whose fault it is: the moment's, the page's, or the whole run's."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from obstore.exceptions import (
    BaseError,
    NotFoundError,
    NotModifiedError,
    PermissionDeniedError,
    UnauthenticatedError,
)

from daemon.errors import Fatal, Gone, NeardupError, Transient

# What obstore's words say of the cause: 429 and 503 are a store's ways to ask for fewer requests.
SIGNS = {"TimedOut": "timeout", "503 Service": "slow_down", "429 Too": "slow_down"}
CODE = re.compile(r"<Code>(\w{1,60})</Code>")
EXPIRED = {"ExpiredToken", "ExpiredTokenException", "TokenRefreshRequired"}
# What S3 says of one page and means of all.
FOR_ALL = {
    "NoSuchBucket": "no such bucket",
    "InvalidAccessKeyId": "the AWS access key is not valid",
    "InvalidToken": "the AWS session token is not valid",
    "RequestTimeTooSkewed": "the clock differs too much from the store's",
}


class Forbidden(Fatal):
    """The store knows who asks, and refuses."""


class StoreDown(Fatal):
    """The store serves nobody now, which ends a run; a later one may find it well."""

    exit_code = 75


@contextmanager
def translated() -> Iterator[None]:
    """Obstore's errors -> ours; NotModifiedError passes."""
    try:
        yield
    except NotModifiedError:
        raise
    except (BaseError, OSError, ValueError) as error:  # ValueError: no store has such a path
        raise _ours(error) from error


def _ours(error: Exception) -> NeardupError:
    """What of the store's says what, and of whom."""
    text = str(error)
    found = CODE.search(text)
    code = found[1] if found else ""
    message = first_line(error).partition(": <")[0] + (f" ({code})" if code else "")
    if code in FOR_ALL:
        return Fatal(f"{FOR_ALL[code]}: {message}")
    if code in EXPIRED:
        return StoreDown(f"the AWS credentials have expired: {message}")
    if isinstance(error, NotFoundError | FileNotFoundError | ValueError):
        return Gone(message)
    if isinstance(error, PermissionDeniedError | UnauthenticatedError | PermissionError):
        return Forbidden(message)
    return Transient(message, next((word for sign, word in SIGNS.items() if sign in text), "store_error"))


def first_line(error: Exception) -> str:
    """Obstore's words, without the debugging below them."""
    return str(error).partition("\n")[0]
