"""The OpenAPI document says enough for somebody who knows nothing else of the API."""

from __future__ import annotations

import json
import re
from typing import Any

from scripts.tree import ROOT

DOCUMENT: dict[str, Any] = json.loads((ROOT / "docs/generated/openapi.json").read_text())
OPERATIONS: dict[str, dict[str, Any]] = {
    f"{method.upper()} {path}": operation
    for path, methods in DOCUMENT["paths"].items()
    for method, operation in methods.items()
}


def test_every_operation_has_a_short_id_of_its_own() -> None:
    ids = [operation["operationId"] for operation in OPERATIONS.values()]
    assert len(set(ids)) == len(ids)
    assert [id for id in ids if not re.fullmatch(r"[a-z]+(_[a-z]+){1,3}", id)] == []
