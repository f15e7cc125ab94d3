"""What the object store says is wrong -> whose fault it is: the moment's, the page's, or the whole run's."""

import re

from neardup.errors import Fatal, NeardupError, Transient

CODE = re.compile(r"<Code>(\w{1,60})</Code>")
EXPIRED = {"ExpiredToken", "ExpiredTokenException", "TokenRefreshRequired"}
# What S3 says of one page and means of all.
FOR_ALL = {
    "NoSuchBucket": "no such bucket",
    "InvalidAccessKeyId": "the AWS access key is not valid",
    "InvalidToken": "the AWS session token is not valid",
    "PermanentRedirect": "the bucket is in another region than content.region",
    "AuthorizationHeaderMalformed": "the bucket is in another region than content.region",
    "RequestTimeTooSkewed": "the clock differs too much from the store's",
}


class Forbidden(Fatal):
    """The store knows who asks, and refuses."""


class StoreDown(Fatal):
    """The store serves nobody now, which ends a run; a later one may find it well."""

    exit_code = 75


def meant(message: str, said: str, kind: type[NeardupError] | str) -> NeardupError:
    """The error that the store means: by S3's code, should there be one in what it `said`, else of this kind.

    A kind that is a word is a Transient's reason.
    """
    found = CODE.search(said)
    code = found[1] if found else ""
    message += f" ({code})" if code else ""
    if code in FOR_ALL:
        return Fatal(f"{FOR_ALL[code]}: {message}")
    if code in EXPIRED:
        return StoreDown(f"the AWS credentials have expired: {message}")
    return Transient(message, kind) if isinstance(kind, str) else kind(message)
