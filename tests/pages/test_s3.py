"""Laws of requests to S3: they are signed correctly, go to the right address, and verify its certificate.

Laws of signed requests: their headers are those of botocore, and a store that checks signatures serves them.

Law: a request ends among concurrent requests as it does alone, whatever fault it encounters.
"""

import hashlib
import json
import re
import socket
import ssl
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple
from unittest.mock import Mock, patch
from urllib.parse import quote

import botocore.auth
import pycurl
import pytest
import trustme
from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from botocore.exceptions import ClientError
from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from neardup.config import Content
from neardup.config.section import read
from neardup.core.page import Page
from neardup.errors import Fatal, Forbidden, Gone, NeardupError, Transient
from neardup.pages import s3
from neardup.pages.s3 import Get, Signer, Transfers
from neardup.pages.store import File, GivenPage, Pages

from tests.support.builders import fetch_page
from tests.support.faults.fault_proxy import Fault, Proxy, proxied
from tests.support.sampling import count_examples
from tests.support.servers import REGION, Aws
from tests.support.small_servers import BODY, KEY, SECRET_KEY, TOKEN, Server, content_of, pages_of, serving, with_keys


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with with_keys() as server:
        yield server


def signature(path: str, headers: dict[str, str], host: str) -> str:
    """The signature that botocore computes for a GET with these headers."""
    fields = dict(part.strip().split("=", 1) for part in headers["authorization"].partition(" ")[2].split(","))
    signed = {name: headers[name] for name in fields["SignedHeaders"].split(";")}
    request = AWSRequest("GET", f"http://{host}{path}", headers=signed)
    request.context["timestamp"] = headers["x-amz-date"]
    auth = S3SigV4Auth(Credentials(KEY, SECRET_KEY, TOKEN), "s3", REGION)
    return str(auth.signature(auth.string_to_sign(request, auth.canonical_request(request)), request))


names = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="/"), min_size=1).filter(
    lambda name: name not in (".", "..")
)
etags = st.none() | st.text("abc0123-", min_size=1).map(lambda etag: f'"{etag}"')


@given(st.lists(names, min_size=1).map("/".join), etags)
@example("HINDI/1.html", None)
@example("राम कथा/(1)*'!~ +=&?#%41%.html", '"e-2"')
@example("1//", None)
def test_every_request_is_signed_as_botocore_signs_it(server: Server, path: str, etag: str | None) -> None:
    fetch_page(pages_of(server), path, etag)
    requested, headers = server.requests.pop()
    assert headers.get("if-none-match") == etag
    assert headers["x-amz-security-token"] == TOKEN
    assert headers["x-amz-content-sha256"] == hashlib.sha256(b"").hexdigest()
    authorization = headers["authorization"]
    assert authorization.startswith(
        f"AWS4-HMAC-SHA256 Credential={KEY}/{headers['x-amz-date'][:8]}/{REGION}/s3/aws4_request,"
    )
    assert {"host", "x-amz-date", "x-amz-security-token"} < set(
        authorization.partition("SignedHeaders=")[2].split(",")[0].split(";")
    )
    assert authorization.endswith(f"Signature={signature(requested, headers, f'localhost:{server.port}')}"), requested


def test_the_address_follows_endpoint_region_and_style(server: Server) -> None:
    def address(*, endpoint: str | None, path_style: bool) -> str:
        content = Content(url="s3://stories/html/", endpoint=endpoint, region="ap-south-1", path_style=path_style)
        get = Pages(content).begin("1.html")
        assert isinstance(get, Get)
        return str(get.curl.getinfo(pycurl.EFFECTIVE_URL))

    assert address(endpoint=None, path_style=False) == "https://stories.s3.ap-south-1.amazonaws.com/html/1.html"
    assert address(endpoint=None, path_style=True) == "https://s3.ap-south-1.amazonaws.com/stories/html/1.html"
    assert address(endpoint="http://box:9/", path_style=True) == "http://box:9/stories/html/1.html"
    assert address(endpoint="http://box:9", path_style=False) == "http://stories.box:9/html/1.html"


def test_a_failed_renewal_of_keys_is_transient(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    pages, refused = pages_of(server), ClientError({"Error": {"Code": "Throttling", "Message": "m"}}, "AssumeRole")
    monkeypatch.setattr(pages._store, "_credentials", Mock(get_frozen_credentials=Mock(side_effect=refused)))
    with pytest.raises(Transient, match="Throttling"):
        pages.begin("1.html")
    monkeypatch.setenv("AWS_PROFILE", "missing")
    with pytest.raises(Fatal, match="missing"):
        pages_of(server)


def test_the_region_comes_from_the_configuration_or_the_environment(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    def signed_for(region: str | None) -> str:
        content = replace(content_of(f"http://localhost:{server.port}"), region=region)
        fetch_page(Pages(content), "1.html")
        return server.requests.pop()[1]["authorization"].split("/")[2]

    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    assert (signed_for(REGION), signed_for(None)) == (REGION, "eu-west-1")
    monkeypatch.setenv("AWS_REGION", "eu-west-2")
    assert (signed_for(REGION), signed_for(None)) == (REGION, "eu-west-2")


@pytest.mark.parametrize("endpoint", ["localhost:9000", "file:///etc", "ftp://box", "http://me:secret@box"])
def test_only_http_endpoints_without_credentials_are_accepted(endpoint: str) -> None:
    with pytest.raises(ValueError, match="endpoint"):
        read(Content, {"url": "s3://stories", "endpoint": endpoint})


def test_headers_of_interim_responses_are_ignored(server: Server) -> None:
    document = fetch_page(pages_of(server), "after-a-hint")
    assert document == Page(BODY, None, '"e"')
    server.requests.clear()


def test_an_etag_is_sent_back_unchanged(server: Server) -> None:
    assert fetch_page(pages_of(server), "1.html", '"é"') is not None
    assert server.requests.pop()[1]["if-none-match"] == '"é"'
    assert fetch_page(pages_of(server), "/1.html") is not None
    assert server.requests.pop()[0] == "/stories/html/1.html", "a leading slash must be dropped"


@pytest.mark.parametrize("path", ["..", "../other/1.html", "HINDI/../../1.html", "./1.html", "\ud800.html"])
def test_no_path_leads_out_of_the_bucket(server: Server, path: str) -> None:
    with pytest.raises(Gone):
        fetch_page(pages_of(server), path)
    assert not server.requests, "libcurl would have resolved the dots"


def test_a_request_keeps_no_header_of_the_previous_one(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    pages = pages_of(server)
    fetch_page(pages, "1.html", '"e"')
    monkeypatch.delenv("AWS_SESSION_TOKEN")
    for reused, etags in ((pages, [None]), (pages_of(server), ['"e"', None, '"f"'])):
        for etag in etags:
            fetch_page(reused, "1.html", etag)
            assert server.requests[-1][1].get("if-none-match") == etag
    assert "x-amz-security-token" not in server.requests.pop()[1]
    server.requests.clear()


@pytest.mark.parametrize("path", ["with-its-length", "in-chunks"])
def test_an_object_over_the_limit_is_cut(server: Server, path: str) -> None:
    assert fetch_page(pages_of(server, max_bytes=len(BODY)), path) == Page(BODY, None, '"e"')
    cut = fetch_page(pages_of(server, max_bytes=len(BODY) - 1), path)
    assert cut == Page(BODY[:-1], None, '"e"', is_cut=True)
    server.requests.clear()


def test_the_store_s_certificate_is_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    authority, context = trustme.CA(), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(context)
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    with serving(context) as server:
        with pytest.raises(Transient, match="certificate"):
            fetch_page(pages_of(server, "https"), "1.html")
        monkeypatch.setenv("AWS_CA_BUNDLE", str(tmp_path / "ca.pem"))
        assert fetch_page(pages_of(server, "https"), "1.html") == Page(BODY, None, '"e"')


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
    monkeypatch.delenv("AWS_SESSION_TOKEN", raising=False)
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


REPEATS = 9  # more than the attempts that libcurl could make by itself


@pytest.fixture(scope="module")
def proxy(server: Server) -> Iterator[Proxy]:
    with proxied(f"http://127.0.0.1:{server.port}") as made, pytest.MonkeyPatch.context() as patch:
        patch.setattr(s3, "REQUEST_SECONDS", 0.75)
        yield made


FAULTS = [*Fault]


def outcome(fetch: Callable[[], Page | None]) -> object:
    try:
        return fetch()
    except NeardupError as error:
        return type(error), str(error), vars(error)


@settings(max_examples=count_examples(15), deadline=None)
@given(st.lists(st.sampled_from(FAULTS), min_size=1, max_size=12))
@example([Fault.SILENT])
@example([*FAULTS, *FAULTS])
def test_a_request_ends_among_others_as_it_does_alone(proxy: Proxy, faults: list[Fault]) -> None:
    planned = {f"/stories/html/{n}.html": [fault] * REPEATS for n, fault in enumerate(faults)}
    pages = Pages(content_of(proxy.endpoint))
    control, peer = socket.socketpair()
    with control, peer:
        transfers, gets = Transfers(control.fileno()), dict[Get | File | GivenPage, int]()
        proxy.plan(planned)
        for n in range(len(faults)):
            gets[get := pages.begin(f"{n}.html")] = n
            transfers.begin(get)
        concurrent, received = dict[int, object](), 0
        while transfers.under_way:
            assert not transfers.advance(wait=True), "nothing was sent on the control socket"
            unpopped = transfers.body_bytes
            while ended := transfers.pop_finished():
                unpopped -= ended.body_bytes
                received += ended.body_bytes
                assert transfers.body_bytes == unpopped, "a popped GET still counts"
                concurrent[gets[ended]] = outcome(partial(pages.read_page, ended))
        assert transfers.body_bytes == 0
        assert received >= len(BODY) * faults.count(Fault.NONE)
        transfers.begin(pages.begin("silent.html"))
        peer.send(b"!")
        while not transfers.advance(wait=True):
            """Its own connection may become ready first."""
    proxy.plan(planned)
    alone = {n: outcome(partial(fetch_page, pages, f"{n}.html")) for n in range(len(faults))}
    for n, fault in enumerate(faults):
        assert without_numbers(concurrent[n]) == without_numbers(alone[n]), (fault, concurrent[n], alone[n])


@pytest.mark.parametrize("connections", [1, 2, 3])
def test_it_is_counted_how_often_libcurl_sends_a_request_again(proxy: Proxy, connections: int) -> None:
    pages = Pages(content_of(proxy.endpoint))
    control, peer = socket.socketpair()
    with control, peer:
        transfers = Transfers(control.fileno())
        for planned, expected in (
            ([Fault.NONE] * connections, [0] * connections),  # which opens as many connections
            ([Fault.RESET] * connections, [connections]),
        ):
            proxy.plan({"/stories/html/1.html": planned})
            for _ in expected:
                transfers.begin(pages.begin("1.html"))
            counted = []
            while transfers.under_way:
                transfers.advance(wait=True)
                while ended := transfers.pop_finished():
                    assert pages.read_page(ended), "the last request was not answered"
                    counted.append(ended.resent)
            assert counted == expected


def without_numbers(outcome: object) -> str:
    """An outcome without the milliseconds in libcurl's messages."""
    return re.sub(r"\d+", "", repr(outcome))
