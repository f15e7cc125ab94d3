"""Pages in S3, fetched by libcurl: GETs of objects, signed, many at a time in one thread.

Why libcurl: a 20 KB page cost 210 to 240 us of CPU with its fingerprint, by one thread; obstore by 16 threads took 320
to 350 (two cores, shared with nginx).  libcurl does not retry, except where the store closes a connection that it kept
open instead of answering the next request on it: `resent` says so.  Its multi interface, on epoll, performs many
transfers in one thread.

GETs are signed by AWS Signature Version 4:
https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-header-based-auth.html

Why not by libcurl: it derives the signing key again for each request, from five SHA-256 contexts of its own, which took
29 % of the CPU of a fetch.  The key is the same for a day, and all headers but Authorization for a second.
"""

import hashlib
import hmac
import math
import os
import re
import select
import time
from collections import deque
from http import HTTPStatus
from itertools import chain
from operator import attrgetter
from typing import Any
from urllib.parse import quote, urlsplit

import certifi
import pycurl
from msgspec import Struct, field

from neardup.errors import Fatal, Gone, Transient
from neardup.pages.store import AnyContent, File
from neardup.s3 import NO_CREDENTIALS, find_code, make_document_error, make_error

EMPTY_SHA256 = hashlib.sha256(b"").hexdigest()  # of the body of a GET
NO_QUERY = ""
BODY_BYTES = attrgetter("body_bytes")
READABLE = select.EPOLLIN | select.EPOLLHUP | select.EPOLLERR
REQUEST_SECONDS = 30.0
CONNECT_SECONDS = 15.0  # longer than the watchdog lets one page be computed, which delays all transfers
BUFFER_BYTES = 65_536  # a usual page is received at once, and not in two parts
KEYS_SECONDS = 10.0  # between two calls of botocore, whose provider may be slow; it renews keys minutes early
CHARSET = "latin-1"  # of headers
DEFAULT_REGION = "us-east-1"
DEFAULT_PORTS = {"http": ":80", "https": ":443"}  # which the Host header leaves out
MD5_ETAG = re.compile(r'"?([0-9a-f]{32})"?', re.IGNORECASE)  # of an object uploaded in one part
# The ETag of an object encrypted with these is no MD5 of its bytes.
KMS_HEADER, KMS = "x-amz-server-side-encryption", "aws:kms"
CUSTOMER_KEY_HEADER = "x-amz-server-side-encryption-customer-algorithm"


class Bucket:
    """The objects below s3://BUCKET/PREFIX, with the endpoint and region of [content].

    Raises Fatal if there are no AWS credentials.
    """

    def __init__(self, url: str, content: AnyContent) -> None:
        import botocore.session  # noqa: PLC0415 - 0.3 s, for pages in S3 only
        from botocore.exceptions import BotoCoreError  # noqa: PLC0415 - likewise

        session = botocore.session.get_session()
        try:
            credentials = session.get_credentials()
            region = os.environ.get("AWS_REGION") or session.get_config_variable("region")
        except BotoCoreError as error:
            raise Fatal(f"AWS: {error}") from error
        if credentials is None:
            raise Fatal(NO_CREDENTIALS)
        self._credentials = credentials
        self._keys: Any = None
        self._keys_until = 0.0
        region = content.region or region or DEFAULT_REGION
        base = urlsplit(_make_base_url(url, content, region))
        self._origin, self._folder = f"{base.scheme}://{base.netloc}", base.path
        self._signer = Signer(base.netloc.removesuffix(DEFAULT_PORTS[base.scheme]), region)
        self._max_bytes = content.max_bytes
        self._idle: list[pycurl.Curl] = []  # handles to use again: each keeps its connection open

    def begin(self, path: str, etag: str | None) -> "Get":
        """A GET to be performed, conditional if the last known ETag is given.

        Raises Gone for a path that no object can have, Transient where the credentials cannot be renewed.
        """
        try:
            name = quote(path.removeprefix("/"), safe="/~")
        except UnicodeEncodeError as error:
            raise Gone(f"no object can have this name: {path!r}") from error
        if not name:
            raise Gone(f"no object can have this name: {path!r}")
        path = f"{self._folder}/{name}"
        headers = self._signer.headers(path, self._read_keys(), int(time.time()))
        if etag:
            headers.append(f"If-None-Match: {etag}".encode(CHARSET))
        curl = self._idle.pop() if self._idle else _make_handle()
        curl.setopt(pycurl.HTTPHEADER, headers)
        size = len(path) + sum(map(len, headers))  # bytes, without the few that libcurl adds
        return Get(curl, f"{self._origin}{path}", etag, self._max_bytes, self._idle, request_bytes=size)

    def _read_keys(self) -> Any:
        """The current access keys, which botocore renews before they expire.  Raises Transient."""
        if time.monotonic() >= self._keys_until:
            try:
                self._keys = self._credentials.get_frozen_credentials()
            except Exception as error:  # each credential provider has error classes of its own
                raise Transient(f"the AWS credentials cannot be renewed: {error}", "store_error") from error
            self._keys_until = time.monotonic() + KEYS_SECONDS
        return self._keys


def _make_handle() -> pycurl.Curl:
    curl = pycurl.Curl()
    options: dict[int, Any] = {
        pycurl.BUFFERSIZE: BUFFER_BYTES,
        pycurl.CAINFO: os.environ.get("AWS_CA_BUNDLE") or certifi.where(),
        pycurl.CONNECTTIMEOUT_MS: int(CONNECT_SECONDS * 1000),
        pycurl.HTTP_VERSION: pycurl.CURL_HTTP_VERSION_1_1,
        pycurl.NOSIGNAL: 1,
        pycurl.PATH_AS_IS: 1,  # as it is signed
        pycurl.PROTOCOLS: pycurl.PROTO_HTTP | pycurl.PROTO_HTTPS,
        pycurl.TIMEOUT_MS: int(REQUEST_SECONDS * 1000),
        pycurl.USERAGENT: "neardup",
    }
    for option, value in options.items():
        curl.setopt(option, value)
    return curl


def _make_base_url(url: str, content: AnyContent, region: str) -> str:
    """The URL to which paths are appended."""
    parts = urlsplit(url)
    scheme, _, host = (content.endpoint or f"https://s3.{region}.amazonaws.com").rstrip("/").partition("://")
    root = f"{host}/{parts.netloc}" if content.path_style else f"{parts.netloc}.{host}"
    return f"{scheme}://{root}/{quote(parts.path.strip('/'), safe='/~')}".rstrip("/")


class Get(Struct, eq=False):
    """A GET: a handle to be performed, and afterwards its result."""

    curl: pycurl.Curl
    url: str  # the address of the object
    etag: str | None
    max_bytes: int
    idle: list[pycurl.Curl]
    request_bytes: int
    failure: tuple[int, str] | None = None  # libcurl's error number and message
    resent: int = 0  # times, by libcurl, on other connections
    head: list[bytes] = field(default_factory=list)
    body: list[bytes] = field(default_factory=list)
    body_bytes: int = 0  # received so far
    is_text: bool = False  # as `File.is_text` says of a file: it is a page, not a plain text

    def __post_init__(self) -> None:
        self.curl.setopt(pycurl.URL, self.url)
        self.curl.setopt(pycurl.HEADERFUNCTION, self.head.append)
        self.curl.setopt(pycurl.WRITEFUNCTION, self._receive)

    def _receive(self, data: bytes) -> int:
        """Keep a part of the body; 0, which libcurl takes as an error, ends the transfer of too large an object."""
        self.body.append(data)
        self.body_bytes += len(data)
        return len(data) if self.body_bytes <= self.max_bytes else 0

    def end(self, number: int, message: str) -> None:
        """Take note that the transfer has ended, with libcurl's error number, or 0, and message.

        libcurl says how many bytes of requests it sent, which shows how many requests they were.
        """
        self.failure = (number, message) if number else None
        self.resent = max(self.curl.getinfo(pycurl.REQUEST_SIZE) // self.request_bytes - 1, 0)

    def result(self) -> tuple[bytes, dict[str, str]] | None:
        """The object's bytes and its headers, by lower-case names; None where it has not changed.  Call it once.

        Of an object that is too large only one byte more than is allowed.  Raises Transient, and what `make_error`
        makes of the response: Gone, Forbidden, StoreDown or Fatal.
        Transient too for a response that contradicts itself or the request.
        """
        status, body = self.curl.getinfo(pycurl.RESPONSE_CODE), b"".join(self.body)
        self.body.clear()
        self.idle.append(self.curl)
        if self.body_bytes > self.max_bytes and status == HTTPStatus.OK:
            return body[: self.max_bytes + 1], self._parse_headers()
        if self.failure is not None:
            number, message = self.failure  # of libcurl, also where a body is shorter than it should be
            reason = "timeout" if number == pycurl.E_OPERATION_TIMEDOUT else "store_error"
            raise Transient(f"{self.url}: {message}", reason)
        if status not in (HTTPStatus.OK, HTTPStatus.NOT_MODIFIED):
            raise make_error(self.url, status, find_code(body.decode("utf-8", "replace")))
        headers = self._parse_headers()
        if status == HTTPStatus.NOT_MODIFIED:
            if not self.etag or _strip_etag(headers.get("etag", self.etag)) != _strip_etag(self.etag):
                raise self._refuse_answer(f"304 Not Modified, where the last known ETag was {self.etag}")
            return None
        if error := make_document_error(self.url, body):
            raise error
        if "content-range" in headers:
            raise self._refuse_answer("200 OK with a part of the object")
        if not self._matches_etag(body, headers) and not headers.keys() & {"content-length", "transfer-encoding"}:
            raise self._refuse_answer("200 OK with a body of unknown length")
        return body, headers

    def _matches_etag(self, body: bytes, headers: dict[str, str]) -> bool:
        """Whether the ETag is the MD5 of the body; False where the ETag is no MD5.  Raises Transient."""
        found = MD5_ETAG.fullmatch(headers.get("etag", ""))
        encrypted = headers.get(KMS_HEADER, "").startswith(KMS) or CUSTOMER_KEY_HEADER in headers
        if found is None or encrypted:
            return False
        if hashlib.md5(body, usedforsecurity=False).hexdigest() != found[1].lower():
            raise self._refuse_answer(f"200 OK with {len(body):,} bytes whose MD5 is not the ETag")
        return True

    def _refuse_answer(self, what: str) -> Transient:
        return Transient(f"{self.url}: {what}", "store_error")

    def _parse_headers(self) -> dict[str, str]:
        headers = dict[str, str]()
        for line in self.head:
            name, colon, value = line.decode(CHARSET).partition(":")
            if colon:
                headers[name.lower()] = value.strip()
            elif name.startswith("HTTP/"):
                headers.clear()  # those before belong to an interim response (1xx)
        return headers


def _strip_etag(etag: str) -> str:
    """An ETag without the mark of a weak one, and without its quotes."""
    return etag.removeprefix("W/").strip('"')


class Transfers:
    """GETs under way; it also watches a control socket, and reports when that becomes readable."""

    def __init__(self, control_socket: int) -> None:
        self._control_socket = control_socket
        self._poll = select.epoll()
        self._poll.register(control_socket, select.EPOLLIN)
        self._watched: set[int] = set()
        self._multi = pycurl.CurlMulti()
        self._multi.setopt(pycurl.M_SOCKETFUNCTION, self._watch)
        self._multi.setopt(pycurl.M_TIMERFUNCTION, self._set_timer)
        self._due = math.inf  # when libcurl wants to be called for its time-outs
        self._active: dict[pycurl.Curl, Get] = {}
        self._finished: deque[Get | File] = deque()

    @property
    def under_way(self) -> int:
        """The number of GETs begun and not yet popped."""
        return len(self._active) + len(self._finished)

    @property
    def body_bytes(self) -> int:
        """The bytes of bodies received for them, complete or not."""
        total: int = sum(map(BODY_BYTES, chain(self._active.values(), self._finished)))
        return total

    def begin(self, get: Get | File) -> None:
        """Begin a GET."""
        if get.curl is None:
            self._finished.append(get)
        else:
            self._active[get.curl] = get
            self._multi.add_handle(get.curl)

    def pop_finished(self) -> Get | File | None:
        """A GET that has its response or has failed, or None."""
        return self._finished.popleft() if self._finished else None

    def advance(self, *, wait: bool) -> bool:
        """Process what has arrived; with `wait`, block until something does, unless a GET has finished.

        Returns whether the control socket is readable.
        """
        seconds = max(self._due - time.monotonic(), 0) if wait and not self._finished else 0
        readable = False
        for descriptor, event in self._poll.poll(None if seconds == math.inf else seconds):
            if descriptor == self._control_socket:
                readable = True
            else:
                read, write = event & READABLE and pycurl.CSELECT_IN, event & select.EPOLLOUT and pycurl.CSELECT_OUT
                self._multi.socket_action(descriptor, read | write)
        if self._due <= time.monotonic():
            self._due = math.inf
            self._multi.socket_action(pycurl.SOCKET_TIMEOUT, 0)
        self._collect()
        return readable

    def _collect(self) -> None:
        queued = 1
        while queued:
            queued, done, failed = self._multi.info_read()
            for curl, number, message in [*((curl, 0, "") for curl in done), *failed]:
                self._multi.remove_handle(curl)
                get = self._active.pop(curl)
                get.end(number, message)
                self._finished.append(get)

    def _watch(self, action: int, descriptor: int, _multi: pycurl.CurlMulti, _assigned: object) -> None:
        """Called by libcurl: the events of a socket that it waits for."""
        if action == pycurl.POLL_REMOVE:
            self._watched.discard(descriptor)
            self._poll.unregister(descriptor)
            return
        events = (action & pycurl.POLL_IN and select.EPOLLIN) | (action & pycurl.POLL_OUT and select.EPOLLOUT)
        if descriptor in self._watched:
            self._poll.modify(descriptor, events)
        else:
            self._watched.add(descriptor)
            self._poll.register(descriptor, events)

    def _set_timer(self, milliseconds: int) -> None:
        """Called by libcurl: when it wants to be called for its time-outs."""
        self._due = math.inf if milliseconds < 0 else time.monotonic() + milliseconds / 1000


class Signer:
    """Makes the headers of GETs from the host of a bucket; `host` is what the Host header names."""

    def __init__(self, host: str, region: str) -> None:
        self._host = host
        self._region = region
        self._signed: tuple[object, int] | None = None  # the access keys and the second of what follows
        self._key_of: tuple[str, str] | None = None  # the secret key and the day of the signing key
        self._key: hmac.HMAC
        self._headers: list[bytes] = []
        self._canonical_headers = b""  # and what else follows the path in the canonical request
        self._string_to_sign = b""  # before the hash of the canonical request
        self._authorization = b""  # before the signature

    def headers(self, path: str, keys: Any, second: int) -> list[bytes]:
        """All headers of a GET of `path`, which is percent-encoded and has no query.

        `keys` have an access_key, a secret_key and a token, which may be None; `second` counts from the epoch.
        """
        if (keys, second) != self._signed:
            self._enter_second(keys, second)
        canonical_request = hashlib.sha256(b"GET\n%b\n%b" % (path.encode(), self._canonical_headers))
        signature = self._key.copy()
        signature.update(self._string_to_sign + canonical_request.hexdigest().encode())
        return [*self._headers, self._authorization + signature.hexdigest().encode()]

    def _enter_second(self, keys: Any, second: int) -> None:
        """Compute what requests with the same keys share in this second."""
        date = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(second))
        day = date[:8]
        if self._key_of != (keys.secret_key, day):
            self._key, self._key_of = self._derive_key(keys.secret_key, day), (keys.secret_key, day)
        fields = {"host": self._host, "x-amz-content-sha256": EMPTY_SHA256, "x-amz-date": date}
        if keys.token:
            fields["x-amz-security-token"] = keys.token
        names, scope = ";".join(fields), f"{day}/{self._region}/s3/aws4_request"
        canonical_fields = "".join(f"{name}:{value}\n" for name, value in fields.items())
        self._headers = [f"{name}: {value}".encode() for name, value in fields.items()]
        self._canonical_headers = f"{NO_QUERY}\n{canonical_fields}\n{names}\n{EMPTY_SHA256}".encode()
        self._string_to_sign = f"AWS4-HMAC-SHA256\n{date}\n{scope}\n".encode()
        self._authorization = (
            f"Authorization: AWS4-HMAC-SHA256 Credential={keys.access_key}/{scope}, SignedHeaders={names}, Signature="
        ).encode()
        self._signed = keys, second

    def _derive_key(self, secret_key: str, day: str) -> hmac.HMAC:
        """The HMAC with the signing key of a day, to be copied for each signature."""
        key = f"AWS4{secret_key}".encode()
        for part in (day, self._region, "s3", "aws4_request"):
            key = hmac.digest(key, part.encode(), "sha256")
        return hmac.new(key, digestmod="sha256")
