"""Laws of signed requests: their headers are those of botocore, and a store that checks signatures serves them."""

import json
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import NamedTuple
from unittest.mock import patch
from urllib.parse import quote

import botocore.auth
import pytest
from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from hypothesis import example, given
from hypothesis import strategies as st
from neardup.errors import Forbidden
from neardup.pages.s3 import Signer
from neardup.pages.store import Pages

from tests.support.builders import fetch_page
from tests.support.one_body_server import BODY, content_of
from tests.support.servers import Aws

DAY = 86_400
READ_OBJECTS = {"Version": "2012-10-17", "Statement": {"Effect": "Allow", "Action": "s3:*", "Resource": "*"}}


class Keys(NamedTuple):
    access_key: str
    secret_key: str
    token: str | None


def headers_by_botocore(url: str, keys: Keys, region: str, second: int) -> dict[str, str]:
    """The headers of a GET that botocore signs, and the Host header, by lower-case names."""
    request = AWSRequest("GET", url)
    with patch.object(botocore.auth, "get_current_datetime", lambda: datetime.fromtimestamp(second, UTC)):
        S3SigV4Auth(Credentials(*keys), "s3", region).add_auth(request)
    return {"host": url.split("/")[2]} | {name.lower(): value for name, value in request.headers.items()}


printable = st.text(st.characters(codec="ascii", exclude_categories=["Cc", "Zs"]), min_size=1)
keys = st.builds(Keys, st.text("ABCDEFGHIJ234567", min_size=1), printable, st.none() | printable)
regions = st.sampled_from(["us-east-1", "ap-south-1", "cn-north-1", "auto"])
hosts = st.sampled_from(["stories.s3.ap-south-1.amazonaws.com", "localhost:9000", "[::1]:9000", "box"])
paths = st.text(st.characters(exclude_categories=["Cs"]), min_size=1).map(lambda path: quote(f"/{path}", safe="/~"))
moments = st.integers(0, 4_000 * DAY).flatmap(
    lambda second: st.sampled_from([second, second // DAY * DAY, second // DAY * DAY - 1 + DAY])
)


@given(hosts, regions, st.lists(st.tuples(paths, st.integers(0, 1), moments), min_size=1), st.tuples(keys, keys))
@example(
    "box",
    "auto",
    [("/a%20b%2B/%E0%A4%B0%E0%A4%BE", 0, DAY - 1), ("//", 0, DAY), ("/~", 1, DAY)],
    (Keys("A", "s", None), Keys("A", "s", "token/+==")),
)
def test_all_headers_are_those_of_botocore(
    host: str, region: str, requests: list[tuple[str, int, int]], renewed: tuple[Keys, Keys]
) -> None:
    """Whatever was signed before: the day may end, and the keys may be renewed."""
    signer = Signer(host, region)
    for path, place, second in requests:
        made = dict(header.decode().split(": ", 1) for header in signer.headers(path, renewed[place], second))
        assert {name.lower(): value for name, value in made.items()} == headers_by_botocore(
            f"http://{host}{path}", renewed[place], region, second
        )


def test_a_store_that_checks_signatures_serves_the_pages(aws: Aws, monkeypatch: pytest.MonkeyPatch) -> None:
    iam, s3 = aws.client("iam"), aws.client("s3")
    iam.create_user(UserName="reader")
    iam.put_user_policy(UserName="reader", PolicyName="read", PolicyDocument=json.dumps(READ_OBJECTS))
    made = SimpleNamespace(**iam.create_access_key(UserName="reader")["AccessKey"])
    aws.bucket("stories")
    names = ["HINDI/1.html", "राम कथा/(1)*'!~ +=&?#%41%.html", "1//2.html"]
    for name in names:
        s3.put_object(Bucket="stories", Key=f"html/{name}", Body=BODY)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", made.AccessKeyId)
    aws.post("reset-auth", 0)
    try:
        for secret, expected in ((made.SecretAccessKey, None), ("wrong", Forbidden)):
            monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", secret)
            for name in names:
                if expected is None:
                    page = fetch_page(Pages(content_of(aws.endpoint)), name)
                    assert page is not None and page.body == BODY, name
                else:
                    with pytest.raises(expected):
                        fetch_page(Pages(content_of(aws.endpoint)), name)
    finally:
        aws.post("reset-auth", float("inf"))
