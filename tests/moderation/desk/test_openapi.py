"""The OpenAPI document of the desk's API is valid, has every route, and says what the desk takes and answers."""

import json
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from neardup.config import Config, Content, Source
from neardup.core.verify.tiers import TRANSLATED
from neardup.http.requests import METHOD_NOT_ALLOWED, NOT_FOUND
from neardup.ledger import connect, meaning_flags
from neardup.ledger.meaning_flags import ChunkPair, MeaningFlag
from neardup.moderation.desk import api, api_messages
from neardup.moderation.desk.addresses import parse_case_queue, parse_meaning_queue
from neardup.moderation.desk.api import OPERATIONS, describe_api
from neardup.moderation.desk.moderators import Moderator, add_moderator
from neardup.moderation.export.tables import MEANING_COLUMNS

from tests.support.command import Neardup, environment
from tests.support.desk_browser import serving
from tests.support.desk_client import desk
from tests.support.drawn_requests import MODES, assert_described, list_operations, load_operations
from tests.support.paths import DEPLOY
from tests.support.verdicts import put_complaint

DOCUMENTATION = (DEPLOY / "docs" / "export-and-desk.md").read_text(encoding="utf-8").partition("### JSON API\n")[2]
PLACEHOLDERS = {"story": "ID", "author": "ID", "decision": "N", "number": "N", "a": "A", "b": "B"}  # as it writes them
A, B = 4104000, 4104002  # two of the samples


@pytest.fixture(scope="module")
def served(backfilled_samples: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """The address of a desk with the samples, two complaints and a translated pair, and the token of a moderator."""
    folder = tmp_path_factory.mktemp("desk")
    shutil.copytree(backfilled_samples, folder, dirs_exist_ok=True)
    moderators = folder / "moderators.toml"
    secret = add_moderator(moderators, Moderator("Asha"))
    with closing(connect(folder / "neardup.db")) as db:
        put_complaint(db, A, B)
        put_complaint(db, B, None)
        hashes = dict(db.execute("SELECT id, text_hash FROM stories WHERE id IN (?, ?)", (A, B)))
        found = MeaningFlag(A, B, TRANSLATED, 0.4, [ChunkPair(0, 1, 0.71)], hashes[A], hashes[B])
        meaning_flags.put(db, [found], "m")
    env = {"NEARDUP_REVIEW__MODERATORS": str(moderators), "NEARDUP_REVIEW__SECOND_REVIEWS": "1.0"}
    with serving(Neardup(folder, environment()), **env) as opened:
        yield opened.address, secret


@pytest.fixture(scope="module")
def operations() -> dict[str, Any]:
    return load_operations(describe_api())


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("operation", list_operations(describe_api()))
def test_every_answer_is_described_and_none_is_a_5xx(
    served: tuple[str, str], operations: dict[str, Any], operation: str, mode: str
) -> None:
    address, secret = served
    stories = [str(A), str(B), "4104001"]
    known = {"story": stories, "a": [str(A)], "b": [str(B)], "number": ["1", "2"], "decision": ["1"], "author": ["1"]}
    assert_described(operations[operation], mode, address, known, {"Authorization": f"Bearer {secret}"})


def test_the_document_is_valid_openapi() -> None:
    from openapi_spec_validator import OpenAPIV31SpecValidator  # noqa: PLC0415 - each worker would load it

    OpenAPIV31SpecValidator(describe_api()).validate()


async def test_the_document_is_served_and_has_every_route(tmp_path: Path) -> None:
    async with desk(tmp_path) as client:
        async with client.get(api.DOCUMENT) as answer:
            served = await answer.json()
        assert client.app is not None
        resources = [(route.method, route.resource.canonical) for route in client.app.router.routes() if route.resource]
    assert served == json.loads(json.dumps(describe_api()))
    routes = {(method, path) for method, path in resources if path.startswith("/api/") and method != "HEAD"}
    described = {(method.upper(), path) for path, methods in served["paths"].items() for method in methods}
    assert described == routes - {("GET", api.DOCUMENT)}
    for path, methods in served["paths"].items():
        for method, operation in methods.items():
            assert operation["security"] == [{"token": []}], f"{method} {path} asks for no token"


def test_the_documentation_has_every_operation_and_every_problem() -> None:
    written = set(re.findall(r"`(GET|POST) (/api/[\w/.]+)`", DOCUMENTATION))
    operations = {
        (operation.method, re.sub(r"\{(\w+)\}", lambda name: PLACEHOLDERS[name[1]], operation.path))
        for operation in OPERATIONS
    }
    assert written == operations | {("GET", api.DOCUMENT)}
    explained = dict[str, str]()
    for names, status in re.findall(r"(?m)^\| (`[\w-]+`(?:, `[\w-]+`)*) \| (\d+) \|", DOCUMENTATION):
        explained |= dict.fromkeys(re.findall(r"`([\w-]+)`", names), status)
    kinds = {kind for operation in OPERATIONS for kind in operation.all_problems}
    assert explained == {kind.name: str(kind.status) for kind in {*kinds, NOT_FOUND, METHOD_NOT_ALLOWED}}


class Asked(Mapping[str, str]):
    """A query that notes which parameters are looked up."""

    def __init__(self) -> None:
        self.names = set[str]()

    def __getitem__(self, name: str) -> str:
        self.names.add(name)
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0


def test_the_queries_have_the_parameters_that_are_read(tmp_path: Path) -> None:
    config = Config(source=Source(manifest=Path("none.csv")), content=Content(url=f"file:{tmp_path}"))
    cases, pairs, part = Asked(), Asked(), api_messages.Part.model_fields.keys()
    parse_case_queue(cases, config, Moderator("Asha"))
    parse_meaning_queue(pairs, config)
    assert api_messages.CasesQuery.model_fields.keys() == cases.names | part
    assert api_messages.MeaningQuery.model_fields.keys() == pairs.names | part


def test_a_meaning_pair_has_the_columns_of_its_export() -> None:
    assert [*api_messages.MeaningPair.model_fields] == [*MEANING_COLUMNS, "seen"]
