"""The API does as its description says: every operation, with data that fits and data that does not, every check."""

from __future__ import annotations

import os
from typing import Any

import pytest
import schemathesis
from hypothesis import assume
from schemathesis.config import SchemathesisConfig

from scripts.openapi import document
from tests.support.api_samples import taught
from tests.support.people import Town

pytestmark = [pytest.mark.verify, pytest.mark.timeout(180)]

EXAMPLES = int(os.environ.get("PHRONESIS_TEST_EXAMPLES", 10))
"""Calls of each operation beside those that its parameters' bounds ask for."""
WORLD = taught()
CONFIG = {
    "generation": {
        "mode": "all",
        "max-examples": EXAMPLES,
        "deterministic": True,
        # JSON schema cannot say of the texts inside a free object that they hold no NUL; the strict reader's tests do.
        "allow-x00": False,
        # The key goes with every call; what a call without a good one gets, the check `ignored_auth` looks at.
        "with-security-parameters": False,
    },
    # A body that breaks its description may be over its greatest size as well.
    "checks": {"negative_data_rejection": {"expected-statuses": [400, 401, 403, 404, 405, 406, 409, 413, 415, 422, 428, 429]}},
}
SCHEMA = schemathesis.openapi.from_dict(document(), config=SchemathesisConfig.from_dict(CONFIG))


@pytest.fixture(scope="package")
async def address(everybody: Town) -> dict[str, Any]:
    """How to call the stack as its owner, once there is one of each thing."""
    await WORLD.fill(everybody.owner)
    return {
        "base_url": str(everybody.owner.http.base_url),
        "headers": {"Authorization": f"Bearer {everybody.owner.key}"},
        "timeout": 45,
    }


@SCHEMA.parametrize()
def test_an_operation_holds_to_its_description(case: schemathesis.Case, address: dict[str, Any]) -> None:
    WORLD.place(case)
    assume(WORLD.reachable(case))
    told(case, case.call_and_validate(**address))
    if WORLD.placed(case):
        told(case, case.call_and_validate(**address))


def told(case: schemathesis.Case, response: schemathesis.Response) -> None:
    """Hold the status of an answer to those that the description names: the form of all other errors is not enough."""
    # A method that no operation of the path has is told by the form of all errors: there is no operation to name it.
    named = {*case.operation.definition.raw["responses"], "405"}
    assert str(response.status_code) in named, f"{case.method} {case.path}: {response.status_code} is not described"
