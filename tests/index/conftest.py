"""The backends that the contract suite runs against."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.index_under_test import Bench, kinds_of
from tests.support.servers import PROGRAMS


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Try a law with the kinds of index that fall to it, unless it names its own."""
    named = [mark.args[0] for mark in metafunc.definition.iter_markers("parametrize")]
    if "bench" in metafunc.fixturenames and "bench" not in named:
        metafunc.parametrize("bench", kinds_of(metafunc.function.__name__), indirect=True)


@pytest.fixture
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Bench]:
    server = request.param.rpartition(" ")[2]
    where = request.getfixturevalue("cluster_url") if server == "cluster" else ""
    if server in PROGRAMS:
        where = request.getfixturevalue("empty_server")(server)
    made = Bench(request.param, where, tmp_path)
    yield made
    made.close()
