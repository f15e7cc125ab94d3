"""Law: a request ends among concurrent requests as it does alone, whatever fault it encounters."""

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
from neardup.pages.local import File, GivenPage
from neardup.pages.s3 import Get, Transfers
from neardup.pages.store import Pages

from tests.support.builders import fetch_page
from tests.support.faults.fault_proxy import Fault, Proxy, proxied
from tests.support.one_body_server import BODY, Server, content_of, with_keys
from tests.support.sampling import count_examples

REPEATS = 9  # more than the attempts that libcurl could make by itself


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with with_keys() as made:
        yield made


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
