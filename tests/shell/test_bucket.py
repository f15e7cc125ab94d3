"""Requests for objects: signed as S3 wants them, over TLS that is checked, and among others as alone."""

import asyncio
import hashlib
import os
import socket
import ssl
import threading
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import trustme
from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from hypothesis import example, given
from hypothesis import strategies as st

from daemon.bucket import Get
from daemon.config import Content
from daemon.errors import Gone, NeardupError, TooLarge, Transient
from daemon.fetch import Document, Pages
from daemon.transfers import Transfers
from tests.servers import REGION

KEY, SECRET, TOKEN = "AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", "IQoJb3/+=="
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
            self.send_header("Content-Length", str(len(BODY)))
            self.send_header("ETag", '"e"')
            self.end_headers()
            self.wfile.write(BODY)

        def log_message(self, *_: object) -> None:
            """Nothing is told."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
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


def pages_of(server: Server, url: str = "s3://stories/html", scheme: str = "http") -> Pages:
    endpoint = f"{scheme}://localhost:{server.port}"
    return Pages(Content(url=url, endpoint=endpoint, region=REGION, path_style=True))


def signature(path: str, headers: dict[str, str], host: str) -> str:
    """What botocore would sign a GET with, that has these headers."""
    fields = dict(part.strip().split("=", 1) for part in headers["authorization"].partition(" ")[2].split(","))
    signed = {name: headers[name] for name in fields["SignedHeaders"].split(";")}
    request = AWSRequest("GET", f"http://{host}{path}", headers=signed)
    request.context["timestamp"] = headers["x-amz-date"]
    auth = S3SigV4Auth(Credentials(KEY, SECRET, TOKEN), "s3", REGION)
    return str(auth.signature(auth.string_to_sign(request, auth.canonical_request(request)), request))


names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(lambda name: name not in (".", ".."))
etags = st.none() | st.text("abc0123-", min_size=1).map(lambda etag: f'"{etag}"')


@given(st.lists(names, min_size=1).map("/".join), etags)
@example("HINDI/1.html", None)
@example("राम कथा/(1)*'!~ +=&?#%41%.html", '"e-2"')
@example("//", None)
def test_every_request_is_signed_as_botocore_signs_it(server: Server, path: str, etag: str | None) -> None:
    pages_of(server).get(path, etag)
    asked, headers = server.asked.pop()
    assert headers.get("if-none-match") == etag
    assert headers["x-amz-security-token"] == TOKEN
    assert headers["x-amz-content-sha256"] == hashlib.sha256(b"").hexdigest()
    said = headers["authorization"]
    assert said.startswith(f"AWS4-HMAC-SHA256 Credential={KEY}/{headers['x-amz-date'][:8]}/{REGION}/s3/aws4_request,")
    assert {"host", "x-amz-date", "x-amz-security-token"} < set(said.partition("SignedHeaders=")[2].split(",")[0].split(";"))
    assert said.endswith(f"Signature={signature(asked, headers, f'localhost:{server.port}')}"), asked
