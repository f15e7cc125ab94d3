"""Requests for objects: signed as S3 wants them, over TLS that is checked, and among others as alone."""

import hashlib
import re
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pycurl
import pytest
import trustme
from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from hypothesis import example, given, settings
from hypothesis import strategies as st

from daemon import bucket
from daemon.bucket import Get
from daemon.config import Content
from daemon.errors import Gone, NeardupError, TooLarge, Transient
from daemon.fetch import Document, Pages
from daemon.folder import File
from daemon.transfers import Transfers
from tests.faults.proxy import Fault, Proxy, proxied
from tests.made import got
from tests.servers import REGION

KEY, SECRET, TOKEN = "AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", "IQoJb3/+=="
MANY = 9  # as often as libcurl could ask again by itself, and more
BODY = "<p>राम अपने गाँव के पुराने स्कूल में".encode()


@dataclass
class Server:
    """Gives every object the same body, and keeps what it was asked."""

    port: int
    asked: list[tuple[str, dict[str, str]]] = field(default_factory=list)


@contextmanager
def serving(context: ssl.SSLContext | None = None) -> Iterator[Server]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_GET(self) -> None:
            made.asked.append((self.path, {name.lower(): value for name, value in self.headers.items()}))
            self.send_response(200)
            self.send_header("ETag", '"e"')
            if self.path.endswith("/in-chunks"):
                self.send_header("Transfer-Encoding", "chunked")
                self.end_headers()
                self.wfile.write(b"%x\r\n%b\r\n0\r\n\r\n" % (len(BODY), BODY))
            else:
                self.send_header("Content-Length", str(len(BODY)))
                self.end_headers()
                self.wfile.write(BODY)

        def log_message(self, *_: object) -> None:
            """Nothing is told."""

    class Listening(ThreadingHTTPServer):
        request_queue_size = 128
        daemon_threads = True

    server = Listening(("127.0.0.1", 0), Handler)
    if context is not None:
        server.socket = context.wrap_socket(server.socket, server_side=True)
    made = Server(server.server_port)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield made
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving() as made, pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ACCESS_KEY_ID", KEY)
        patch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
        patch.setenv("AWS_SESSION_TOKEN", TOKEN)
        yield made


@pytest.fixture(scope="module")
def proxy(server: Server) -> Iterator[Proxy]:
    with proxied(f"http://127.0.0.1:{server.port}") as made, pytest.MonkeyPatch.context() as patch:
        patch.setattr(bucket, "REQUEST_SECONDS", 0.25)
        yield made


def content_of(endpoint: str, max_bytes: int = 1_000_000) -> Content:
    return Content(url="s3://stories/html", endpoint=endpoint, region=REGION, path_style=True, max_bytes=max_bytes)


def pages_of(server: Server, scheme: str = "http", max_bytes: int = 1_000_000) -> Pages:
    return Pages(content_of(f"{scheme}://localhost:{server.port}", max_bytes))


def signature(path: str, headers: dict[str, str], host: str) -> str:
    """What botocore would sign a GET with, that has these headers."""
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
@example("//", None)
def test_every_request_is_signed_as_botocore_signs_it(server: Server, path: str, etag: str | None) -> None:
    got(pages_of(server), path, etag)
    asked, headers = server.asked.pop()
    assert headers.get("if-none-match") == etag
    assert headers["x-amz-security-token"] == TOKEN
    assert headers["x-amz-content-sha256"] == hashlib.sha256(b"").hexdigest()
    said = headers["authorization"]
    assert said.startswith(f"AWS4-HMAC-SHA256 Credential={KEY}/{headers['x-amz-date'][:8]}/{REGION}/s3/aws4_request,")
    assert {"host", "x-amz-date", "x-amz-security-token"} < set(
        said.partition("SignedHeaders=")[2].split(",")[0].split(";")
    )
    assert said.endswith(f"Signature={signature(asked, headers, f'localhost:{server.port}')}"), asked


def test_a_bucket_is_asked_for_where_it_is(server: Server) -> None:
    def asked(*, endpoint: str | None, path_style: bool) -> str:
        content = Content(url="s3://stories/html/", endpoint=endpoint, region="ap-south-1", path_style=path_style)
        get = Pages(content).begin("1.html")
        assert isinstance(get, Get)
        return str(get.curl.getinfo(pycurl.EFFECTIVE_URL))

    assert asked(endpoint=None, path_style=False) == "https://stories.s3.ap-south-1.amazonaws.com/html/1.html"
    assert asked(endpoint=None, path_style=True) == "https://s3.ap-south-1.amazonaws.com/stories/html/1.html"
    assert asked(endpoint="http://box:9/", path_style=True) == "http://box:9/stories/html/1.html"
    assert asked(endpoint="http://box:9", path_style=False) == "http://stories.box:9/html/1.html"


@pytest.mark.parametrize("path", ["..", "../other/1.html", "HINDI/../../1.html", "./1.html", "\ud800.html"])
def test_no_path_leads_out_of_the_bucket(server: Server, path: str) -> None:
    with pytest.raises(Gone):
        got(pages_of(server), path)
    assert not server.asked, "libcurl would have shortened it"


def test_a_request_takes_nothing_over_from_the_one_before(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    pages = pages_of(server)
    got(pages, "1.html", '"e"')
    monkeypatch.delenv("AWS_SESSION_TOKEN")
    for those, etags in ((pages, [None]), (pages_of(server), ['"e"', None, '"f"'])):
        for etag in etags:
            got(those, "1.html", etag)
            assert server.asked[-1][1].get("if-none-match") == etag
    assert "x-amz-security-token" not in server.asked.pop()[1]
    server.asked.clear()


@pytest.mark.parametrize("path", ["with-its-length", "in-chunks"])
def test_a_large_object_is_not_taken(server: Server, path: str) -> None:
    assert got(pages_of(server, max_bytes=len(BODY)), path) == Document(BODY, None, '"e"')
    with pytest.raises(TooLarge):
        got(pages_of(server, max_bytes=len(BODY) - 1), path)
    server.asked.clear()


def test_the_store_s_certificate_is_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    authority, context = trustme.CA(), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(context)
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    with serving(context) as server:
        with pytest.raises(Transient, match="certificate"):
            got(pages_of(server, "https"), "1.html")
        monkeypatch.setenv("AWS_CA_BUNDLE", str(tmp_path / "ca.pem"))
        assert got(pages_of(server, "https"), "1.html") == Document(BODY, None, '"e"')


FAULTS = [fault for fault in Fault if fault is not Fault.WRONG_ETAG]


def outcome(take: Callable[[], Document | None]) -> object:
    try:
        return take()
    except NeardupError as error:
        return type(error), str(error), vars(error)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.sampled_from(FAULTS), min_size=1, max_size=20))
@example([Fault.SILENT])
@example([*FAULTS, *FAULTS])
def test_whatever_a_request_meets_it_ends_among_others_as_alone(proxy: Proxy, faults: list[Fault]) -> None:
    planned = {f"/stories/html/{n}.html": [fault] * MANY for n, fault in enumerate(faults)}
    pages = Pages(content_of(proxy.endpoint))
    ours, other = socket.socketpair()
    with ours, other:
        transfers, gets = Transfers(ours.fileno()), dict[Get | File, int]()
        proxy.plan(planned)
        for n in range(len(faults)):
            gets[get := pages.begin(f"{n}.html")] = n
            transfers.begin(get)
        among, here = dict[int, object](), 0
        while transfers.under_way:
            assert not transfers.go_on(wait=True), "nobody has said anything on the socket beside"
            held = transfers.held
            while ended := transfers.next():
                held -= ended.size
                here += ended.size
                assert transfers.held == held, "what is given back was held, and is held no more"
                among[gets[ended]] = outcome(partial(pages.taken, ended))
        assert transfers.held == 0
        assert here >= len(BODY) * faults.count(Fault.NONE)
        transfers.begin(pages.begin("silent.html"))
        other.send(b"!")
        while not transfers.go_on(wait=True):
            """The request's connection comes first."""
    proxy.plan(planned)
    alone = {n: outcome(partial(got, pages, f"{n}.html")) for n in range(len(faults))}
    for n, fault in enumerate(faults):
        assert kind(among[n]) == kind(alone[n]), (fault, among[n], alone[n])


def kind(outcome: object) -> object:
    """But for the milliseconds in libcurl's words."""
    return re.sub(r"\d+", "", repr(outcome))
