"""Laws of requests to S3: they are signed correctly, go to the right address, and verify its certificate."""

import hashlib
import ssl
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import Mock

import pycurl
import pytest
import trustme
from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from botocore.exceptions import ClientError
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import replace
from neardup.config import Content
from neardup.config.section import read
from neardup.core.page import Page
from neardup.errors import Fatal, Gone, Transient
from neardup.pages.s3 import Get
from neardup.pages.store import Pages

from tests.support.builders import fetch_page
from tests.support.one_body_server import BODY, KEY, SECRET, TOKEN, Server, content_of, pages_of, serving, with_keys
from tests.support.servers import REGION


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
    auth = S3SigV4Auth(Credentials(KEY, SECRET, TOKEN), "s3", REGION)
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
