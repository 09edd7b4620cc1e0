"""What the contracts say by themselves."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from phronesis_contracts import Principal
from phronesis_contracts.memory import RECALL, RECALL_TOOL, EntityType, ItemKind, Recall
from phronesis_contracts.orchestrator import PROGRESS, TURN, TURN_ENDED, TurnStatus, turn_id
from phronesis_contracts.twin import NodeRef
from tests.support.cases import for_each


def test_a_subject_begins_with_its_kind_and_its_tenant() -> None:
    assert RECALL.on("acme") == "rpc.acme.memory.v1.recall"
    assert TURN.on("acme") == "job.acme.orchestrator.v1.turn"
    assert TURN_ENDED.on("acme") == "evt.acme.orchestrator.v1.turn.ended"
    assert PROGRESS.on("acme", "ann", "t1") == "out.acme.orchestrator.v1.turn.ann.t1"


def test_a_durable_consumer_is_named_after_its_owner_and_its_subject() -> None:
    assert TURN.durable == "orchestrator-orchestrator-v1-turn"
    assert TURN_ENDED.durable("memory") == "memory-orchestrator-v1-turn-ended"


def test_the_same_key_of_the_same_caller_is_the_same_turn() -> None:
    assert turn_id("acme", "ann", "k") == turn_id("acme", "ann", "k")


@given(st.text(), st.text(), st.text(), st.text(), st.text(), st.text())
def test_another_caller_or_key_is_another_turn(a: str, b: str, c: str, x: str, y: str, z: str) -> None:
    clean = [part.replace("\x00", "") for part in (a, b, c, x, y, z)]
    if clean[:3] != clean[3:]:
        assert turn_id(*clean[:3]) != turn_id(*clean[3:])


@for_each("name", ["", "A", "a.b", "a b", "*", ">", "a*", "-a", "é", "a" * 65, "a\n", "$sys"])
def test_a_tenant_or_user_is_one_token_of_a_subject(name: str) -> None:
    for field in ("tenant", "user"):
        with pytest.raises(ValidationError):
            Principal.model_validate({"tenant": "acme", "user": "ann"} | {field: name})


def test_a_principal_cannot_be_changed() -> None:
    with pytest.raises(ValidationError):
        Principal(tenant="acme", user="ann").tenant = "other"  # type: ignore[misc]


def test_a_tool_is_a_models_function() -> None:
    function = RECALL_TOOL.function()
    assert function["name"] == "recall"
    assert function["parameters"] == Recall.model_json_schema()


@pytest.mark.req("D-C12")
def test_every_kind_of_item_is_hydrated_as_one_of_the_two_entities() -> None:
    assert {kind: kind.entity_type for kind in ItemKind} == {
        ItemKind.FACT: EntityType.MEMORY_UNIT,
        ItemKind.NOTE: EntityType.MEMORY_UNIT,
        ItemKind.EPISODE: EntityType.MEMORY_UNIT,
        ItemKind.MESSAGE: EntityType.MEMORY_UNIT,
        ItemKind.CONCEPT: EntityType.CONCEPT,
        ItemKind.NODE: EntityType.CONCEPT,
        ItemKind.STYLE: EntityType.MEMORY_UNIT,
        ItemKind.STRATEGY: EntityType.MEMORY_UNIT,
        ItemKind.PASSAGE: EntityType.MEMORY_UNIT,
    }


def test_a_turn_has_four_ends() -> None:
    assert {status for status in TurnStatus if status.ended} == {
        TurnStatus.COMPLETED,
        TurnStatus.FAILED,
        TurnStatus.CANCELLED,
        TurnStatus.PARKED,
    }


def test_a_node_is_known_by_type_id_and_year() -> None:
    assert NodeRef(type="EntityProject", id="p-1", year=2023).key == "EntityProject/p-1/2023"
