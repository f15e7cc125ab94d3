"""Amazon S3 and stores that speak its protocol: what a refusal means for one object, or for the whole run.

That is all that the readers of pages need, who fetch with curl.  `objects` reads and writes single objects, such as
manifests and exports, over aiobotocore, which takes half a second to load.
"""

import re
from http import HTTPStatus

from neardup.errors import Fatal, Forbidden, Gone, NeardupError, StoreDown, Transient

NO_CREDENTIALS = "no AWS credentials found: set AWS_PROFILE, AWS_ACCESS_KEY_ID or an instance role"
# What S3 sends in place of an object: an optional prolog and comments, then one of its root elements.
S3_DOCUMENT = re.compile(
    rb"(?:\xef\xbb\xbf)?\s*(?:<\?.{0,200}?\?>\s*|<!--.{0,1000}?-->\s*)*"
    rb"<(?:\w{1,60}:)?(?:Error|ErrorResponse|ListBucketResult|ListAllMyBucketsResult)[\s/>]",
    re.DOTALL,
)
CODE_ELEMENT = re.compile(r"<(?:\w{1,60}:)?Code>\s*(\w{1,60})\s*</")
EXPIRED_CODES = {"ExpiredToken", "ExpiredTokenException", "TokenRefreshRequired"}
# S3 returns these codes in reply to a request for one object, but they concern all objects.
FATAL_CODES = {
    "NoSuchBucket": "no such bucket",
    "InvalidAccessKeyId": "the AWS access key is not valid",
    "InvalidToken": "the AWS session token is not valid",
    "PermanentRedirect": "the bucket is in another region than the configuration says",
    "AuthorizationHeaderMalformed": "the bucket is in another region than the configuration says",
    "RequestTimeTooSkewed": "the clock differs too much from the store's",
}
OBJECT_ERRORS: dict[int, type[NeardupError]] = {401: Forbidden, 403: Forbidden, 404: Gone}
BUSY_STATUSES = {429, 503}
BUSY_CODES = {"SlowDown", "ServiceUnavailable", "RequestLimitExceeded"}


def find_code(body: str) -> str:
    """The error code in the XML of an S3 response; empty if there is none."""
    found = CODE_ELEMENT.search(body)
    return found[1] if found else ""


def make_document_error(url: str, body: bytes) -> Transient | None:
    """The error for a body that is a document of S3 itself, with a status that promised an object; None for any other.

    Whatever its code, it is Transient: a store that contradicts itself is not believed.
    """
    if S3_DOCUMENT.match(body) is None:
        return None
    code = find_code(body.decode("utf-8", "replace"))
    what = f"an S3 error ({code})" if code else "an S3 document"
    return Transient(f"{url}: 200 OK with {what} in place of the object", _explain(0, code))


def make_error(url: str, status: int, code: str) -> NeardupError:
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
    return Transient(message, _explain(status, code))


def _explain(status: int, code: str) -> str:
    return "slow_down" if status in BUSY_STATUSES or code in BUSY_CODES else "store_error"
