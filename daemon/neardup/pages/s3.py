"""Pages that are objects of S3, got by libcurl, which also signs the requests.

Measured on two cores, nginx on them, with pages of 20 KB, CPU of a page with its fingerprint: obstore by
16 threads 320 to 350 us, libcurl by one thread 210 to 240.  libcurl does not retry, but on a connection
that the store had closed before it saw the request.
"""

import os
import time
from http import HTTPStatus
from typing import Any
from urllib.parse import quote, urlsplit

import botocore.session
import certifi
import pycurl
from botocore.exceptions import BotoCoreError

from neardup.config import Content
from neardup.errors import Fatal, Gone, NeardupError, TooLarge, Transient
from neardup.s3_errors import NO_CREDENTIALS, code_in, s3_error

REQUEST_SECONDS = 30.0
CONNECT_SECONDS = 15.0  # more than a page may be computed meanwhile
KEYS_SECONDS = 10.0  # botocore renews them minutes early; who gives them may be slow, and is not asked for each page
CHARSET = "latin-1"  # of headers
DEFAULT_REGION = "us-east-1"


class Bucket:
    """Objects of s3://BUCKET/PREFIX, with the endpoint and region of [content].

    Raises Fatal where there are no AWS credentials.
    """

    def __init__(self, url: str, content: Content) -> None:
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
        self._region = content.region or region or DEFAULT_REGION
        self._base = _base(url, content, self._region)
        self._max_bytes = content.max_bytes
        self._idle: list[pycurl.Curl] = []  # a handle keeps its connection

    def begin(self, path: str, etag: str | None) -> "Get":
        """A request, to be performed; for an object that no longer has this ETag, if one is given.

        Raises Gone for a path that cannot be asked for, Transient where the credentials cannot be renewed.
        """
        try:
            url = f"{self._base}/{quote(path.removeprefix('/'), safe='/~')}"
        except UnicodeEncodeError as error:
            raise Gone(f"no object has such a name: {path!r}") from error
        keys = self._current_keys()
        curl = self._idle.pop() if self._idle else self._handle()
        headers = [f"x-amz-security-token: {keys.token}".encode()] if keys.token else []
        if etag:
            headers.append(f"If-None-Match: {etag}".encode(CHARSET))
        curl.unsetopt(pycurl.HTTPHEADER)  # or an empty list would leave those of the handle's last request
        curl.setopt(pycurl.HTTPHEADER, headers)
        curl.setopt(pycurl.USERNAME, keys.access_key)
        curl.setopt(pycurl.PASSWORD, keys.secret_key)
        return Get(curl, url, self._idle)

    def _current_keys(self) -> Any:
        """The keys of now, which botocore renews before they expire.  Raises Transient."""
        if time.monotonic() >= self._keys_until:
            try:
                self._keys = self._credentials.get_frozen_credentials()
            except Exception as error:  # whoever gives credentials has errors of its own
                raise Transient(f"the AWS credentials cannot be renewed: {error}", "store_error") from error
            self._keys_until = time.monotonic() + KEYS_SECONDS
        return self._keys

    def _handle(self) -> pycurl.Curl:
        curl = pycurl.Curl()
        options: dict[int, Any] = {
            pycurl.AWS_SIGV4: f"aws:amz:{self._region}:s3",
            pycurl.CAINFO: os.environ.get("AWS_CA_BUNDLE") or certifi.where(),
            pycurl.CONNECTTIMEOUT_MS: int(CONNECT_SECONDS * 1000),
            pycurl.HTTP_VERSION: pycurl.CURL_HTTP_VERSION_1_1,
            pycurl.MAXFILESIZE_LARGE: self._max_bytes,
            pycurl.NOSIGNAL: 1,
            pycurl.PROTOCOLS: pycurl.PROTO_HTTP | pycurl.PROTO_HTTPS,
            pycurl.TIMEOUT_MS: int(REQUEST_SECONDS * 1000),
        }
        for option, value in options.items():
            curl.setopt(option, value)
        return curl


def _base(url: str, content: Content, region: str) -> str:
    """The address that paths are appended to."""
    parts = urlsplit(url)
    scheme, _, host = (content.endpoint or f"https://s3.{region}.amazonaws.com").rstrip("/").partition("://")
    place = f"{host}/{parts.netloc}" if content.path_style else f"{parts.netloc}.{host}"
    return f"{scheme}://{place}/{quote(parts.path.strip('/'), safe='/~')}".rstrip("/")


class Get:
    """A GET: its handle, to be performed, and then its result."""

    def __init__(self, curl: pycurl.Curl, url: str, idle: list[pycurl.Curl]) -> None:
        self.curl = curl
        self.failure: tuple[int, str] | None = None  # libcurl's number of it, and words
        self._url = url
        self._idle = idle
        self._head: list[bytes] = []
        self._body: list[bytes] = []
        curl.setopt(pycurl.URL, url)
        curl.setopt(pycurl.HEADERFUNCTION, self._head.append)
        curl.setopt(pycurl.WRITEFUNCTION, self._body.append)

    @property
    def size(self) -> int:
        """The bytes of the body that are here."""
        return sum(map(len, self._body))

    def result(self) -> tuple[bytes, dict[str, str]] | None:
        """The object's bytes, and its headers by their names in lower case; None where it has not changed.  Once.

        Raises TooLarge; Gone, Forbidden, StoreDown, Fatal as the store means it; and Transient.
        """
        status, body = self.curl.getinfo(pycurl.RESPONSE_CODE), b"".join(self._body)
        self._body.clear()
        self._idle.append(self.curl)
        if self.failure is not None:
            raise self._failed(*self.failure)
        if status == HTTPStatus.NOT_MODIFIED:
            return None
        if status != HTTPStatus.OK:
            raise s3_error(self._url, status, code_in(body.decode("utf-8", "replace")))
        headers = dict[str, str]()
        for line in self._head:
            name, colon, value = line.decode(CHARSET).partition(":")
            if colon:
                headers[name.lower()] = value.strip()
            elif name.startswith("HTTP/"):
                headers.clear()  # what came before was said of an answer to come
        return body, headers

    def _failed(self, number: int, said: str) -> NeardupError:
        if number == pycurl.E_FILESIZE_EXCEEDED:
            return TooLarge("larger than content.max_bytes")
        return Transient(f"{self._url}: {said}", "timeout" if number == pycurl.E_OPERATION_TIMEDOUT else "store_error")
