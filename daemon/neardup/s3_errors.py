"""Translates the errors of S3 into neardup's: transient, about one object, or about the whole run."""

import re
from http import HTTPStatus

from neardup.errors import Fatal, Forbidden, Gone, NeardupError, StoreDown, Transient

NO_CREDENTIALS = "no AWS credentials found: set AWS_PROFILE, AWS_ACCESS_KEY_ID or an instance role"
CODE = re.compile(r"<Code>(\w{1,60})</Code>")
EXPIRED = {"ExpiredToken", "ExpiredTokenException", "TokenRefreshRequired"}
# S3 returns these codes for one object, but they hold for all objects.
FOR_ALL = {
    "NoSuchBucket": "no such bucket",
    "InvalidAccessKeyId": "the AWS access key is not valid",
    "InvalidToken": "the AWS session token is not valid",
    "PermanentRedirect": "the bucket is in another region than content.region",
    "AuthorizationHeaderMalformed": "the bucket is in another region than content.region",
    "RequestTimeTooSkewed": "the clock differs too much from the store's",
}
FOR_ONE: dict[int, type[NeardupError]] = {401: Forbidden, 403: Forbidden, 404: Gone}
BUSY = {429, 503}


def code_in(body: str) -> str:
    """The error code in the XML of an S3 response; empty if there is none."""
    found = CODE.search(body)
    return found[1] if found else ""


def s3_error(url: str, status: int, code: str) -> NeardupError:
    """The error for a response with this HTTP status and S3 error code; the code takes precedence.

    Every other response is Transient, because another attempt may succeed.
    """
    phrase = HTTPStatus(status).phrase if status in set(HTTPStatus) else ""
    message = f"{url}: {status} {phrase}".rstrip() + (f" ({code})" if code else "")
    if code in FOR_ALL:
        return Fatal(f"{FOR_ALL[code]}: {message}")
    if code in EXPIRED:
        return StoreDown(f"the AWS credentials have expired: {message}")
    if status in FOR_ONE:
        return FOR_ONE[status](message)
    return Transient(message, "slow_down" if status in BUSY else "store_error")
