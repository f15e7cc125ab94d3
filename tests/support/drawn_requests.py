"""Draws requests to an API from its OpenAPI document, valid and not, and holds the answers to the document.

REQUESTS=N sends N to each operation, a half of either sort; `make chaos` sends 2,000.
"""

import os
from collections.abc import Mapping, Sequence
from typing import Any

import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis.checks import not_a_server_error
from schemathesis.core.result import Ok
from schemathesis.generation import GenerationMode
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tests.support.sampling import CHAOS

REQUESTS = int(os.environ.get("REQUESTS", "12" if CHAOS == 1 else "2000"))
CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]


def list_operations(document: dict[str, Any]) -> list[Any]:
    """The operations that a document describes."""
    found = schemathesis.openapi.from_dict(document).get_all_operations()
    return [operation.ok() for operation in found if isinstance(operation, Ok)]


def label_of(operation: Any) -> str:
    """The method and the path of an operation."""
    return str(operation.label)


def assert_described(
    operation: Any,
    mode: GenerationMode,
    address: str,
    known: Mapping[str, Sequence[str]],
    headers: dict[str, str] | None = None,
) -> None:
    """Every answer of an operation is one that the document describes, and none is a 5xx.

    Every second path names something that there is: `known` has its values by the names of the placeholders.
    """

    @settings(max_examples=REQUESTS // 2, suppress_health_check=list(HealthCheck))
    @given(operation.as_strategy(generation_mode=mode), st.booleans(), st.integers(0, 99))
    def send(case: schemathesis.Case[Any], is_known: bool, number: int) -> None:
        if is_known:
            for name in known.keys() & case.path_parameters.keys():
                case.path_parameters[name] = known[name][number % len(known[name])]
        case.call_and_validate(base_url=address, checks=CHECKS, headers=headers)

    send()
