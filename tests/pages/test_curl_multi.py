"""Law: whatever a request meets, it ends among others as alone."""

import re
import socket
from collections.abc import Callable, Iterator
from functools import partial

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from neardup.core.page import Page
from neardup.errors import NeardupError
from neardup.pages import s3
from neardup.pages.curl_multi import Transfers
from neardup.pages.local import File
from neardup.pages.s3 import Get
from neardup.pages.store import Pages

from tests.support.builders import fetch_page
from tests.support.faults.fault_proxy import Fault, Proxy, proxied
from tests.support.one_body_server import BODY, Server, content_of, with_keys

MANY = 9  # as often as libcurl could ask again by itself, and more


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with with_keys() as made:
        yield made


@pytest.fixture(scope="module")
def proxy(server: Server) -> Iterator[Proxy]:
    with proxied(f"http://127.0.0.1:{server.port}") as made, pytest.MonkeyPatch.context() as patch:
        patch.setattr(s3, "REQUEST_SECONDS", 0.25)
        yield made


FAULTS = [fault for fault in Fault if fault is not Fault.WRONG_ETAG]


def outcome(take: Callable[[], Page | None]) -> object:
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
    alone = {n: outcome(partial(fetch_page, pages, f"{n}.html")) for n in range(len(faults))}
    for n, fault in enumerate(faults):
        assert kind(among[n]) == kind(alone[n]), (fault, among[n], alone[n])


def kind(outcome: object) -> object:
    """But for the milliseconds in libcurl's words."""
    return re.sub(r"\d+", "", repr(outcome))
