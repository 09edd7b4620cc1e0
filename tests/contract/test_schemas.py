"""Inside a version only optional fields are added."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import Field, create_model

from phronesis_contracts import Message
from phronesis_contracts.answers import Analysis
from scripts import schemas
from scripts.tree import ROOT


def schema(**fields: Any) -> dict[str, Any]:
    return create_model("Sample", __base__=Message, **fields).model_json_schema()


class Inner(Message):
    """Something inside."""

    a: int
    b: str = ""


class Narrower(Message):
    """Something inside, without a field."""

    a: int


FIELDS: dict[str, Any] = {
    "query": (str, ...),
    "limit": (int, Field(default=10, ge=1)),
    "kind": (str | None, None),
    "inner": (tuple[Inner, ...], ()),
}
OLD = schema(**FIELDS)


def test_the_code_keeps_every_committed_contract() -> None:
    assert schemas.broken() == []


@pytest.mark.req("NC-027")
def test_an_analysts_answer_has_a_published_schema() -> None:
    described = json.loads((ROOT / "docs/generated/openapi.json").read_text())
    answer = described["paths"]["/api/v1/chat/message"]["post"]["responses"]["200"]["content"]["application/json"]["schema"]
    schema = described["components"]["schemas"][answer["$ref"].rpartition("/")[2]]
    assert set(schema["properties"]) >= set(Analysis.model_fields)
    assert set(schema["required"]) >= {"mode", "memory_process", "answer", "confidence"}


def test_every_contract_has_a_committed_schema() -> None:
    assert set(schemas.committed()) == set(schemas.current())


def test_a_schema_does_not_break_itself() -> None:
    assert schemas.breaks(OLD, OLD) == []


def test_an_optional_field_may_be_added() -> None:
    new = schema(
        query=(str, ...),
        limit=(int, Field(default=10, ge=1)),
        kind=(str | None, None),
        inner=(tuple[Inner, ...], ()),
        more=(int, 3),
    )
    assert schemas.breaks(OLD, new) == []


def test_words_for_people_may_change() -> None:
    new = schema(**FIELDS | {"query": (str, Field(description="What is sought.")), "limit": (int, Field(default=20, ge=1))})
    assert schemas.breaks(OLD, new) == []


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"query": None}, ".query is gone"),
        ({"more": (int, ...)}, ".more is now required"),
        ({"query": (str, "")}, ".query may now be missing"),
        ({"query": (int, ...)}, ".query:type was 'string' and is 'integer'"),
        ({"limit": (int, Field(default=10, ge=5))}, ".limit:minimum was 1 and is 5"),
        ({"limit": (int, Field(default=10, ge=1, le=50))}, ".limit:maximum was None and is 50"),
        ({"kind": (str, "")}, ".kind"),
        ({"inner": (tuple[Narrower, ...], ())}, ".inner:items.b is gone"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_anything_else_is_a_break(change: dict[str, Any], says: str) -> None:
    fields = FIELDS | change
    found = schemas.breaks(OLD, schema(**{key: value for key, value in fields.items() if value is not None}))
    assert [line for line in found if line.startswith(says)], found


def test_a_message_that_holds_itself_can_be_compared() -> None:
    tree: dict[str, Any] = {
        "$ref": "#/$defs/Tree",
        "$defs": {"Tree": {"type": "object", "properties": {"children": {"type": "array", "items": {"$ref": "#/$defs/Tree"}}}}},
    }
    assert schemas.breaks(tree, tree) == []
