"""The OpenAPI document is valid, complete, and says what the models accept."""

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from neardup.serve.openapi import document
from neardup.serve.operations import OPERATIONS
from neardup.serve.problems import TYPES
from neardup.serve.requests import CheckRequest, ComparedStory, PutRequest
from openapi_spec_validator import OpenAPIV31SpecValidator
from pydantic import BaseModel, ValidationError

from tests.support.deploy_files import DEPLOY

VALUES = st.none() | st.text(max_size=3) | st.integers(-1, 2**63) | st.just("2026-11-20T02:00:00Z")
MODELS = (CheckRequest, PutRequest, ComparedStory)
BODIES = {
    model: st.dictionaries(st.sampled_from([*model.model_fields, "other"]), VALUES, max_size=5) for model in MODELS
}


@pytest.fixture(scope="module")
def described() -> dict[str, Any]:
    return document()


def test_the_document_is_valid_openapi(described: dict[str, Any]) -> None:
    OpenAPIV31SpecValidator(described).validate()
    assert json.loads(json.dumps(described)) == described


def test_it_describes_every_operation_and_problem(described: dict[str, Any]) -> None:
    operations = {(path, method.upper()) for path, methods in described["paths"].items() for method in methods}
    assert operations == {(one.path, one.method) for one in OPERATIONS}
    found = set(re.findall(r"urn:neardup:problem:([\w-]+)", json.dumps(described["paths"])))
    general = {"not-found", "method-not-allowed"}  # no operation ends in them
    assert found == {kind.name for kind in TYPES} - general


@pytest.mark.parametrize("model", MODELS)
@given(st.data())
def test_schema_and_model_accept_the_same_members(
    described: dict[str, Any], model: type[BaseModel], data: st.DataObject
) -> None:
    body = data.draw(BODIES[model])
    schema = {"$ref": f"#/components/schemas/{model.__name__}", "components": described["components"]}
    fits = Draft202012Validator(schema).is_valid(body)
    try:
        model.model_validate_json(json.dumps(body))
        accepted = True
    except ValidationError as error:
        accepted = {one["type"] for one in error.errors()} == {"value_error"} and "RFC 3339" in str(error)
    assert accepted == fits, body


def test_the_documentation_explains_every_problem() -> None:
    table = (DEPLOY / "docs" / "serve.md").read_text(encoding="utf-8").partition("## Problems")[2].partition("\n## ")[0]
    explained = dict(re.findall(r"(?m)^\| `([\w-]+)` \| (\d+) \|", table))
    assert explained == {kind.name: str(kind.status) for kind in TYPES}
