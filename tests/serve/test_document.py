"""The OpenAPI document says what the service takes."""
# Schemathesis is an extra of its own.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

import json
import warnings
from typing import Any

import pytest

from dpcompose.serve import PERMISSIONS, Role
from dpcompose.serve.gate import ROUTES
from dpcompose.serve.request import STATUSES
from dpcompose.serve.service import PLACE
from tests.serve.conftest import Town

GOOD = {
    "scope": "city",
    "mechanism": "Gaussian(50.0)",
    "key": "k",
    "nonce": "a" * 64,
    "seconds": 60,
    "reason": "why",
}
GOOD |= {"request": "r", "decision": "approved", "actor": "*", "caps": {}, "amounts": {}}
GOOD |= {"role": "analyst", "description": {"release": {}}}


def test_every_route_is_in_the_document_with_the_fields_that_it_needs(town: Town):
    found = town.client.get("/openapi.json").json()
    assert found["openapi"] == "3.0.3" and len(found["paths"]) == len(ROUTES)
    assert set(found["paths"]) == {each.path for each in PERMISSIONS.values() if each.scoped}
    charged = {each: GOOD[each] for each in ("scope", "mechanism", "key")}
    receipt = town.ask("charge", town.tokens[Role.ANALYST], **charged).json()["receipt"]
    given = {**GOOD, "receipt": receipt}
    for name in ROUTES:
        permission = PERMISSIONS[name]
        operation = found["paths"][permission.path][permission.method.lower()]
        assert operation["summary"].endswith(".") and set(operation["responses"]) == {
            "200",
            *STATUSES,
        }
        role = sorted(permission.roles or ())[0]
        required = ROUTES[name].required
        given["name"] = PLACE if name in ("kept", "keep") else "Eve"
        for missing in required:
            fields = {each: given[each] for each in ("scope", *required) if each != missing}
            answer = town.ask(name, town.tokens[role], **fields)
            assert answer.status_code == 422 and missing in answer.json()["reason"], (
                name,
                missing,
                answer.text,
            )


@pytest.mark.slow
def test_schemathesis_finds_nothing(town: Town):
    """A fuzzer by others, on the published document."""
    pytest.importorskip("schemathesis")
    import schemathesis
    from hypothesis import HealthCheck, given, settings

    warnings.simplefilter("ignore")
    schema = schemathesis.openapi.from_dict(json.loads(town.client.get("/openapi.json").text))
    operations: Any = schema.get_all_operations()
    checks: Any = list(HealthCheck)
    for operation in operations:

        @given(case=operation.ok().as_strategy())
        @settings(max_examples=10, deadline=None, database=None, suppress_health_check=checks)
        def attack(case: schemathesis.Case) -> None:
            for token in town.tokens.values():
                sent: dict[str, Any] = (
                    {"json": case.body} if case.method == "POST" else {"params": case.query}
                )
                answer = town.client.request(
                    case.method, case.path, headers={"authorization": f"Bearer {token}"}, **sent
                )
                assert answer.status_code == 200 or str(answer.status_code) in STATUSES, answer.text

        attack()
