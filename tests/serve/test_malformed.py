"""Generated requests, valid and not: every answer is one that the OpenAPI document describes, and none is a 500.

REQUESTS=N sends N of either sort to each operation.
"""

import os
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from neardup.serve.openapi import document
from schemathesis.checks import not_a_server_error
from schemathesis.core.result import Ok
from schemathesis.generation import GenerationMode
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

REQUESTS = int(os.environ.get("REQUESTS", "15"))
SCHEMA = schemathesis.openapi.from_dict(document())
OPERATIONS = [found.ok() for found in SCHEMA.get_all_operations() if isinstance(found, Ok)]
CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]


@pytest.mark.parametrize("mode", GenerationMode)
@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.label)
def test_every_answer_is_described_and_none_is_a_500(served: str, operation: Any, mode: GenerationMode) -> None:
    @settings(max_examples=REQUESTS, suppress_health_check=list(HealthCheck))
    @given(operation.as_strategy(generation_mode=mode))
    def send(case: schemathesis.Case[Any]) -> None:
        case.call_and_validate(base_url=served, checks=CHECKS)

    send()
