"""Forms of the constitutional graph: made from the registry for every type, and read back as a write takes them."""

from __future__ import annotations

import re
from datetime import UTC, datetime

import pytest

from phronesis_contracts import BadRequest, Principal
from phronesis_contracts.constitution.registry import TYPES, Layer
from phronesis_contracts.constitution.values import ConstitutionNode
from phronesis_contracts.constitution.writes import CREATE, UPDATE
from phronesis_contracts.orchestrator import Problem
from phronesis_gateway.console.constitution.pages import create_page, edit_page, form_values, read_form
from tests.support.cases import for_each
from tests.support.personas import Persona

ANN = Principal(tenant="acme", user="ann", **Persona.MAESTRO.rights)
NOW = datetime(2026, 11, 22, tzinfo=UTC)


@for_each("name", TYPES)
def test_a_form_asks_for_every_property_of_its_type(name: str) -> None:
    kind = TYPES[name]
    asked = set(re.findall(r'name="([A-Za-z]+)"', str(create_page(ANN, kind, "key", {}, None))))
    assert {"title", "summary", "description", "status", *(one.name for one in kind.properties)} <= asked
    assert "acknowledge" not in asked


def test_what_is_filled_in_is_written_in_the_form_that_the_contract_takes() -> None:
    goal, decision, task = TYPES["goal"], TYPES["decision"], TYPES["task"]
    filled = {
        "title": " T ",
        "successCriteria": "one\r\n\r\n two ",
        "deadline": "2026-12-01",
        "summary": "",
        "status": "active",
    }
    assert read_form(goal, filled) == {
        "title": "T",
        "status": "active",
        "deadline": "2026-12-01",
        "successCriteria": ["one", "two"],
    }
    CREATE["goal"].rpc.input.model_validate(read_form(goal, filled))
    assert read_form(decision, {"title": "D", "roi": "-0.7"}) == {"title": "D", "roi": {"total": -0.7}}
    assert read_form(task, {"title": "T", "priority": "4", "effortHours": "1.5"})["priority"] == 4
    assert read_form(task, {"title": "T", "acknowledge": "g1, g2,"})["acknowledge"] == ["g1", "g2"]


def test_of_a_node_that_is_there_only_what_changed_is_written_and_what_was_emptied_is_removed() -> None:
    kind = TYPES["decision"]
    content = {"title": "D", "summary": "S", "status": "active", "roi": {"total": 1.0}, "version": 3}
    node = ConstitutionNode.model_validate({"id": "d", "type": "decision", "layer": Layer.EXECUTION, **content})
    before = form_values(kind, node)
    assert read_form(kind, before, before) == {}
    changed = read_form(kind, {**before, "roi": "", "summary": "Other"}, before)
    assert changed == {"summary": "Other", "roi": None}
    UPDATE["decision"].rpc.input.model_validate({"id": "d", **changed})


def test_what_should_be_a_number_and_is_none_is_named() -> None:
    with pytest.raises(BadRequest, match="effort hours is a number"):
        read_form(TYPES["task"], {"title": "T", "effortHours": "many"})


def test_a_form_that_a_guardrail_stopped_keeps_what_was_written_and_asks_for_its_name() -> None:
    problem = Problem(
        code="constitution.guardrail", status=409, detail="name in `acknowledge`: guardrail g1", field="acknowledge"
    )
    shown = str(create_page(ANN, TYPES["task"], "key", {"title": '"><script>'}, problem))
    assert 'name="acknowledge"' in shown
    assert "<script>" not in shown
    assert "guardrail g1" in shown


def test_a_form_that_a_rule_blocks_asks_for_the_reason_to_override_it() -> None:
    problem = Problem(code="constitution.guardrail", status=409, detail="this is not allowed: guardrail g1")
    assert 'name="override"' in str(create_page(ANN, TYPES["task"], "key", {"title": "T"}, problem))
    assert read_form(TYPES["task"], {"title": "T", "override": "the dam breaks"})["override"] == "the dam breaks"


def test_the_form_of_a_node_joins_it_by_every_declared_relationship() -> None:
    node = ConstitutionNode.model_validate({"id": "a/b", "type": "goal", "layer": Layer.VISION, "title": "T", "version": 1})
    shown = str(edit_page(ANN, TYPES["goal"], node, {}, None))
    assert 'action="/console/constitution/join/a%2Fb"' in shown
    assert len(re.findall(r'<option value="[A-Z_]+"', shown)) == 10
