"""Draws requests to an API from its OpenAPI document, valid and not, and holds the answers to the document.

REQUESTS=N sends N to each operation, a half of either sort; `make chaos` sends 2,000.

The library is loaded by the tests that draw, not by each worker of a run, which collects them all.
"""

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.sampling import CHAOS

if TYPE_CHECKING:
    import schemathesis

REQUESTS = int(os.environ.get("REQUESTS", "12" if CHAOS == 1 else "2000"))
MODES = ("positive", "negative")  # values of schemathesis's GenerationMode


def list_operations(document: dict[str, Any]) -> list[str]:
    """The operations that a document describes: the method and the path of each."""
    return [f"{method.upper()} {path}" for path, methods in document["paths"].items() for method in methods]


def load_operations(document: dict[str, Any]) -> dict[str, Any]:
    """The same operations, from which requests can be drawn."""
    import schemathesis  # noqa: PLC0415
    from schemathesis.core.result import Ok  # noqa: PLC0415

    found = schemathesis.openapi.from_dict(document).get_all_operations()
    return {operation.ok().label: operation.ok() for operation in found if isinstance(operation, Ok)}


def assert_described(
    operation: Any, mode: str, address: str, known: Mapping[str, Sequence[str]], headers: dict[str, str] | None = None
) -> None:
    """Every answer of an operation is one that the document describes, and none is a 5xx.

    Every second path names something that there is: `known` has its values by the names of the placeholders.
    """
    from schemathesis.checks import not_a_server_error  # noqa: PLC0415
    from schemathesis.generation import GenerationMode  # noqa: PLC0415
    from schemathesis.specs.openapi import checks  # noqa: PLC0415

    described = [checks.status_code_conformance, checks.content_type_conformance, checks.response_schema_conformance]

    @settings(max_examples=REQUESTS // 2, suppress_health_check=list(HealthCheck))
    @given(operation.as_strategy(generation_mode=GenerationMode(mode)), st.booleans(), st.integers(0, 99))
    def send(case: "schemathesis.Case[Any]", is_known: bool, number: int) -> None:
        if is_known:
            for name in known.keys() & case.path_parameters.keys():
                case.path_parameters[name] = known[name][number % len(known[name])]
        case.call_and_validate(base_url=address, checks=[not_a_server_error, *described], headers=headers)

    send()
