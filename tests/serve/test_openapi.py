"""The OpenAPI document is valid, complete, and says what the models accept and what the service answers.

Each test loads the libraries that no other needs, because each worker of a run loads what is imported here.
"""

import json
import re
import sys
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from neardup.http.openapi import WITH_BODY
from neardup.http.requests import METHOD_NOT_ALLOWED, NOT_FOUND
from neardup.serve.app import OPERATIONS
from neardup.serve.messages import CheckRequest, ComparedStory, DraftRequest, PutRequest
from neardup.serve.operations import ALWAYS, describe_api
from pydantic import BaseModel, ValidationError

from tests.support.drawn_requests import MODES, assert_described, list_operations, load_operations
from tests.support.languages import HINDI
from tests.support.paths import DEPLOY
from tests.support.sample_texts import STORIES

VALUES = (None, "", "a", "कथा", "HINDI", "2026-11-20T02:00:00Z", -1, 0, 1, 2**63 - 1, 2**63, 0.5, True)
MODELS = (CheckRequest, PutRequest, DraftRequest, ComparedStory)
OF_OPERATIONS = {*ALWAYS, *WITH_BODY, *(kind for operation in OPERATIONS for kind in operation.problems)}


@pytest.fixture(scope="module")
def described() -> dict[str, Any]:
    return describe_api(OPERATIONS)


def test_the_document_is_valid_openapi(described: dict[str, Any]) -> None:
    from openapi_spec_validator import OpenAPIV31SpecValidator  # noqa: PLC0415

    OpenAPIV31SpecValidator(described).validate()
    assert json.loads(json.dumps(described)) == described


def test_it_describes_every_operation_and_problem(described: dict[str, Any]) -> None:
    operations = {(path, method.upper()) for path, methods in described["paths"].items() for method in methods}
    assert operations == {(operation.path, operation.method) for operation in OPERATIONS}
    for path, methods in described["paths"].items():
        for method, operation in methods.items():
            assert "`about:blank`" in operation["responses"]["400"]["description"], (
                f"{method} {path} does not describe its answer to what is no HTTP"
            )
    found = set(re.findall(r"urn:neardup:problem:([\w-]+)", json.dumps(described["paths"])))
    assert found == {kind.name for kind in OF_OPERATIONS}


def bodies(model: type[BaseModel]) -> Iterator[dict[str, object]]:
    """Bodies with each member of a model, alone and beside those of a whole story, with each value."""
    whole = {"language": "HINDI", "text": "कथा"}
    for name, value in product([*model.model_fields, "other"], VALUES):
        yield {name: value}
        yield whole | {name: value}


@pytest.mark.parametrize("model", MODELS)
def test_schema_and_model_accept_the_same_members(described: dict[str, Any], model: type[BaseModel]) -> None:
    from jsonschema import Draft202012Validator  # noqa: PLC0415

    schema = {"$ref": f"#/components/schemas/{model.__name__}", "components": described["components"]}
    validator, outcomes = Draft202012Validator(schema), set[bool]()
    for body in bodies(model):
        fits = validator.is_valid(body)
        try:
            model.model_validate_json(json.dumps(body))
            accepted = True
        except ValidationError as error:
            accepted = {problem["type"] for problem in error.errors()} == {"value_error"} and "RFC 3339" in str(error)
        assert accepted == fits, body
        outcomes.add(fits)
    assert outcomes == {True, False}, "all bodies end alike"


@pytest.fixture(scope="module")
def operations(described: dict[str, Any]) -> dict[str, Any]:
    return load_operations(described)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("operation", list_operations(describe_api(OPERATIONS)))
def test_every_answer_is_described_and_none_is_a_5xx(
    served: str, operations: dict[str, Any], operation: str, mode: str
) -> None:
    assert_described(
        operations[operation], mode, served, {"id": ["4104000", "4104002"], "number": ["1"], "author": ["7"]}
    )


def test_the_documentation_explains_every_problem() -> None:
    table = (DEPLOY / "docs" / "serve.md").read_text(encoding="utf-8").partition("## Problems")[2].partition("\n## ")[0]
    explained = dict(re.findall(r"(?m)^\| `([\w-]+)` \| (\d+) \|", table))
    assert explained == {kind.name: str(kind.status) for kind in {*OF_OPERATIONS, NOT_FOUND, METHOD_NOT_ALLOWED}}


def test_a_generated_client_calls_the_service(served: str, described: dict[str, Any], tmp_path: Path) -> None:
    """openapi-python-client makes of the document, without a warning, a client that checks a story."""
    from openapi_python_client import generate  # noqa: PLC0415
    from openapi_python_client.config import Config, ConfigFile, MetaType  # noqa: PLC0415

    source, package = tmp_path / "openapi.json", tmp_path / "generated_neardup"
    source.write_text(json.dumps(described), encoding="utf-8")
    settings = ConfigFile(post_hooks=[])
    config = Config.from_sources(settings, MetaType.NONE, source, "utf-8", overwrite=False, output_path=package)
    assert list(generate(config=config)) == []
    sys.path.insert(0, str(tmp_path))
    try:
        from generated_neardup import Client  # type: ignore[import-not-found]  # noqa: PLC0415
        from generated_neardup.api.default import check, story_of  # type: ignore[import-not-found]  # noqa: PLC0415
        from generated_neardup.models import CheckRequest  # type: ignore[import-not-found]  # noqa: PLC0415
    finally:
        sys.path.remove(str(tmp_path))
    with Client(served) as client:
        story = CheckRequest(language="hi", text=STORIES[HINDI][0], author_id=17)
        found = check.sync(client=client, body=story)
        assert found.verdict == "copy"
        assert check.sync(client=client, body=CheckRequest(language="hi")).errors[0].what == "give either text or html"
        assert story_of.sync("absent", client=client).type_ == "urn:neardup:problem:unknown-story"
