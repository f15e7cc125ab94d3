"""Laws of a store that contradicts itself or the request: its response is never a page, and another attempt is made.

Laws of failing stores: a transient error is retried and counted; any other ends at once with its own reason.

The store is a real HTTP server that sends chosen statuses.
"""

import gzip
import hashlib
from collections.abc import AsyncIterator, Iterator

import pytest
import stamina
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct, field
from neardup.config import Content
from neardup.core.page import Page
from neardup.errors import Gone, Transient
from neardup.pages.store import Pages
from neardup.records import Dead, DeadLettered, Fingerprinted, Outcome, Skip, Skipped, Story
from neardup.retry import ATTEMPTS
from prometheus_client import REGISTRY

from tests.support.builders import fetch_page, worker_of
from tests.support.languages import HINDI
from tests.support.servers import REGION, free_port
from tests.support.small_servers import KEY, SECRET_KEY, RawServer, content_of, raw_server

BODY = "<p>राम अपने गाँव के पुराने स्कूल में हर सुबह जल्दी पहुँच जाता था।</p>".encode()
MD5 = hashlib.md5(BODY).hexdigest()
ERROR = b"<Error><Code>InternalError</Code><Message>We encountered an internal error.</Message></Error>"


@pytest.fixture(scope="module")
def server() -> Iterator[RawServer]:
    with raw_server() as server, pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ACCESS_KEY_ID", KEY)
        patch.setenv("AWS_SECRET_ACCESS_KEY", SECRET_KEY)
        yield server


def response(body: bytes = b"", status: str = "200 OK", **headers: str) -> bytes:
    """A response with these headers, and the length of its body unless another framing is among them."""
    fields = {name.replace("_", "-"): value for name, value in headers.items()}
    if not fields.keys() & {"Content-Length", "Transfer-Encoding"}:
        fields["Content-Length"] = str(len(body))
    head = [f"HTTP/1.1 {status}", *(f"{name}: {value}" for name, value in fields.items() if value)]
    return "\r\n".join([*head, "Connection: close", "", ""]).encode() + body


def fetch(server: RawServer, answer: bytes, etag: str | None = None, path: str = "1.html") -> Page | None:
    server.answer = answer
    return fetch_page(Pages(content_of(f"http://127.0.0.1:{server.port}")), path, etag)


CHUNKED = b"%x\r\n%b\r\n" % (len(BODY), BODY)
LIES = {
    "a 304 that was not asked for": (response(status="304 Not Modified", Content_Length=""), None),
    "a 304 with another ETag": (response(status="304 Not Modified", ETag='"new"', Content_Length=""), '"old"'),
    "a body cut short": (response(BODY[:40], Content_Length=str(len(BODY))), None),
    "a body cut within a chunk": (response(CHUNKED[:40], Transfer_Encoding="chunked"), None),
    "a body without its last chunk": (response(CHUNKED, Transfer_Encoding="chunked"), None),
    "a body of unknown length": (response(BODY, ETag='"e"', Content_Length=""), None),
    "an empty body of another ETag": (response(b"", ETag=f'"{MD5}"'), None),
    "a part of the object": (response(BODY, "206 Partial Content", Content_Range="bytes 0-9/10"), None),
    "a part as the whole": (response(BODY, Content_Range="bytes 0-9/10"), None),
    "no content": (response(status="204 No Content", ETag=f'"{MD5}"', Content_Length=""), None),
    "a redirect": (response(status="301 Moved Permanently", Location="http://127.0.0.1:1/"), None),
    "a temporary redirect": (response(status="307 Temporary Redirect", Location="http://127.0.0.1:1/"), None),
    "a bucket's listing": (response(b'<?xml version="1.0"?>\n<ListBucketResult xmlns="x"></ListBucketResult>'), None),
    "a compressed error": (response(gzip.compress(ERROR), Content_Encoding="gzip"), None),
    "an error as a web page": (response(ERROR, ETag='"e"', Content_Type="text/html"), None),
    "an empty error": (response(b"<Error/>"), None),
}


@pytest.mark.parametrize("lie", LIES)
def test_a_lie_is_an_error_of_the_store(server: RawServer, lie: str) -> None:
    answer, etag = LIES[lie]
    server.requests.clear()
    with pytest.raises(Transient) as raised:
        fetch(server, answer, etag)
    assert raised.value.reason == "store_error"
    assert len(server.requests) == 1 and "\n" not in str(raised.value)


spaces = st.text(" \t\r\n", max_size=5)
prologs = st.sampled_from(["", '<?xml version="1.0" encoding="UTF-8"?>', "<?xml version='1.0'?>"])
comments = st.sampled_from(["", "<!-- request 7 -->"])
roots = st.sampled_from(["Error", 'Error xmlns="http://s3.amazonaws.com/doc/2006-03-01/"', "s3:Error", "ErrorResponse"])
codes = st.sampled_from(["InternalError", "AccessDenied", "NoSuchKey", "NoSuchBucket", "SlowDown", "ExpiredToken"])


@given(st.sampled_from(["", "\ufeff"]), prologs, spaces, comments, spaces, roots, codes)
def test_an_error_document_is_never_a_page(  # noqa: PLR0917
    server: RawServer, mark: str, prolog: str, first: str, comment: str, second: str, root: str, code: str
) -> None:
    name = root.split(maxsplit=1)[0]
    body = f"{mark}{prolog}{first}{comment}{second}<{root}><Code>{code}</Code></{name}>".encode()
    with pytest.raises(Transient, match=code) as raised:
        fetch(server, response(body, ETag=f'"{hashlib.md5(body).hexdigest()}"'))
    assert raised.value.reason == ("slow_down" if code == "SlowDown" else "store_error")


@given(st.integers(0, len(BODY) - 1), st.sampled_from([f'"{MD5}"', MD5, f'"{MD5.upper()}"']))
def test_a_body_shorter_than_the_object_is_never_a_page(server: RawServer, size: int, etag: str) -> None:
    with pytest.raises(Transient, match="MD5"):
        fetch(server, response(BODY[:size], ETag=etag))


@pytest.mark.parametrize(
    "headers",
    [
        {"ETag": f'"{MD5}"'},
        {"ETag": f'"{MD5}"', "x-amz-server-side-encryption": "AES256"},
        {"ETag": f'"{"0" * 32}"', "x-amz-server-side-encryption": "aws:kms"},
        {"ETag": f'"{"0" * 32}"', "x-amz-server-side-encryption": "aws:kms:dsse"},
        {"ETag": f'"{"0" * 32}"', "x-amz-server-side-encryption-customer-algorithm": "AES256"},
        {"ETag": f'"{"0" * 32}-2"'},
        {"ETag": f'W/"{"0" * 32}"'},
        {"ETag": '"e"'},
        {},
    ],
    ids=str,
)
def test_a_whole_object_is_a_page_whatever_its_etag(server: RawServer, headers: dict[str, str]) -> None:
    assert fetch(server, response(BODY, **headers)) == Page(BODY, None, headers.get("ETag"))


def test_a_body_without_a_length_is_a_page_by_its_md5(server: RawServer) -> None:
    assert fetch(server, response(BODY, ETag=f'"{MD5}"', Content_Length="")) == Page(BODY, None, f'"{MD5}"')


def test_a_page_about_errors_is_a_page(server: RawServer) -> None:
    for body in (b"<p><Error></p>" + BODY, b"Error" + BODY, b"<Errors>" + BODY, b"<html>" + ERROR):
        assert fetch(server, response(body)) == Page(body, None, None)


def test_a_304_is_believed_where_it_was_asked_for(server: RawServer) -> None:
    for etag in ("", '"old"', 'W/"old"'):
        assert fetch(server, response(status="304 Not Modified", ETag=etag, Content_Length=""), '"old"') is None


def test_the_bucket_itself_is_no_page(server: RawServer) -> None:
    server.requests.clear()
    with pytest.raises(Gone):
        fetch(server, response(BODY), path="/")
    assert not server.requests


STORY = Story(1, HINDI, "page.html")
PAGE = "<p>राम अपने गाँव के पुराने स्कूल में हर सुबह जल्दी पहुँच जाता था और लिखता था।</p>"


class FaultyStore(Struct):
    """An object store that answers the next requests with `statuses`, and further ones with a page."""

    port: int
    statuses: list[int] = field(default_factory=list)
    asked: int = 0

    async def answer(self, _: web.Request) -> web.StreamResponse:
        self.asked += 1
        status = self.statuses.pop(0) if self.statuses else 200
        code = {403: "AccessDenied", 404: "NoSuchKey", 503: "SlowDown"}.get(status, "InternalError")
        if status == 200:
            headers = {"ETag": '"e"', "Last-Modified": "Thu, 01 Jan 2026 00:00:00 GMT"}
            return web.Response(body=PAGE.encode(), headers=headers)
        return web.Response(status=status, text=f"<Error><Code>{code}</Code><Message>m</Message></Error>")


@pytest.fixture
def _no_back_off() -> Iterator[None]:
    """The usual number of attempts, without the back-off between them."""
    with stamina.set_testing(True, attempts=ATTEMPTS):
        yield


@pytest.fixture
async def store(monkeypatch: pytest.MonkeyPatch, _no_back_off: None) -> AsyncIterator[FaultyStore]:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    store = FaultyStore(free_port())
    app = web.Application()
    app.add_routes([web.get("/{path:.*}", store.answer)])
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", store.port).start()
    yield store
    await runner.cleanup()


async def outcome(store: FaultyStore, *statuses: int) -> Outcome:
    store.statuses = list(statuses)
    content = Content(url="s3://b", endpoint=f"http://127.0.0.1:{store.port}", region=REGION, path_style=True)
    return await worker_of(content).outcome(STORY)


def retries(reason: str) -> float:
    return REGISTRY.get_sample_value("neardup_retries_total", {"stage": "fetch", "reason": reason}) or 0.0


@pytest.mark.parametrize(
    ("status", "reason"), [(500, "store_error"), (502, "store_error"), (503, "slow_down"), (429, "slow_down")]
)
async def test_a_transient_error_is_retried(store: FaultyStore, status: int, reason: str) -> None:
    before = retries(reason)
    assert isinstance(await outcome(store, status, status), Fingerprinted)
    assert store.asked == 3
    assert retries(reason) == before + 2


async def test_a_lasting_error_is_dead_lettered_with_its_message(store: FaultyStore) -> None:
    before = retries("slow_down")
    result = await outcome(store, *[503] * 100)
    assert isinstance(result, DeadLettered)
    assert result.reason == Dead.STORE_ERROR
    assert "503" in result.error
    assert store.asked == ATTEMPTS, "only one layer may retry"
    assert retries("slow_down") == before + ATTEMPTS - 1, "the last attempt is not followed by a retry"


async def test_a_refusal_is_not_retried(store: FaultyStore) -> None:
    result = await outcome(store, 403)
    assert isinstance(result, DeadLettered) and result.reason == Dead.FORBIDDEN
    assert store.asked == 1


async def test_a_missing_page_is_skipped(store: FaultyStore) -> None:
    assert await outcome(store, 404) == Skipped(STORY, Skip.MISSING)
    assert store.asked == 1


@pytest.mark.usefixtures("_no_back_off")
async def test_an_unreachable_store_means_a_dead_letter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
    result = await outcome(FaultyStore(free_port()))
    assert isinstance(result, DeadLettered) and result.reason == Dead.STORE_ERROR
