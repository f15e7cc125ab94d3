"""Translates the errors of S3 into neardup's: transient, about one object, or about the whole run."""

import re
from http import HTTPStatus

from neardup.errors import Fatal, Forbidden, Gone, NeardupError, StoreDown, Transient

NO_CREDENTIALS = "no AWS credentials found: set AWS_PROFILE, AWS_ACCESS_KEY_ID or an instance role"
CODE_ELEMENT = re.compile(r"<Code>(\w{1,60})</Code>")
EXPIRED_CODES = {"ExpiredToken", "ExpiredTokenException", "TokenRefreshRequired"}
# S3 returns these codes in reply to a request for one object, but they concern all objects.
FATAL_CODES = {
    "NoSuchBucket": "no such bucket",
    "InvalidAccessKeyId": "the AWS access key is not valid",
    "InvalidToken": "the AWS session token is not valid",
    "PermanentRedirect": "the bucket is in another region than content.region",
    "AuthorizationHeaderMalformed": "the bucket is in another region than content.region",
    "RequestTimeTooSkewed": "the clock differs too much from the store's",
}
OBJECT_ERRORS: dict[int, type[NeardupError]] = {401: Forbidden, 403: Forbidden, 404: Gone}
BUSY_STATUSES = {429, 503}


def code_in(body: str) -> str:
    """The error code in the XML of an S3 response; empty if there is none."""
    found = CODE_ELEMENT.search(body)
    return found[1] if found else ""


def s3_error(url: str, status: int, code: str) -> NeardupError:
    """The error for a response with this HTTP status and S3 error code; the code takes precedence.

    A response with neither a code nor a status that is known here is Transient: another attempt may succeed.
    """
    phrase = HTTPStatus(status).phrase if status in set(HTTPStatus) else ""
    message = f"{url}: {status} {phrase}".rstrip() + (f" ({code})" if code else "")
    if code in FATAL_CODES:
        return Fatal(f"{FATAL_CODES[code]}: {message}")
    if code in EXPIRED_CODES:
        return StoreDown(f"the AWS credentials have expired: {message}")
    if status in OBJECT_ERRORS:
        return OBJECT_ERRORS[status](message)
    return Transient(message, "slow_down" if status in BUSY_STATUSES else "store_error")
