"""Prompts for models that hold little: everything gives way before the message does."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path

import pytest

from phronesis_contracts import Principal
from phronesis_orchestrator.agents.tools import build_toolbox
from phronesis_orchestrator.conversations.history import PastMessage
from phronesis_orchestrator.models.prompts import (
    fit_tools,
    inquiry_messages,
    new_mark,
    opening_messages,
    prompt_size,
    router_messages,
    with_keys,
)
from phronesis_orchestrator.models.reasoner import CallResult, Fault, Inquiry, Move, ToolCall
from phronesis_orchestrator.models.templates import SCHEMAS
from tests.support.personas import Persona
from tests.unit.orchestrator.test_prompts import AGENT, a_turn, blocks

TOOLS = build_toolbox(AGENT, Principal(tenant="acme", user="ann", **Persona.ADMIN.rights)).definitions()


def test_instructions_that_leave_no_room_lose_their_middle_and_the_message_stays_whole() -> None:
    template = "First. {{input}}\n" + "Long. \n" * 4_000 + "Last: JSON."
    own = AGENT.model_copy(update={"prompts": {**AGENT.prompts, "router": template}, "bootstrap": "General. " * 4_000})
    messages = router_messages(own, a_turn("Who runs it, and since when?"), None, 1_500)
    assert prompt_size(messages, "router", 10_000) <= 1_500
    assert blocks(messages)["message"] == "Who runs it, and since when?"
    assert messages[0]["content"].startswith("General.")
    assert messages[0]["content"].endswith("Last: JSON.")
    assert "First. (block message)" in messages[0]["content"]


@pytest.mark.parametrize("budget", [1_000, 1_500, 3_000])
@pytest.mark.parametrize("size", [5, 200, 5_000])
def test_every_shipped_prompt_fits_a_small_model_with_its_message(budget: int, size: int) -> None:
    """Down to a context of 2,000 tokens, with a long past and a full memory: nothing fails for its size."""
    folder = files("phronesis_instructions").joinpath("content")
    bootstrap = folder.joinpath("matrix", "tier1.md").read_text(encoding="utf-8")
    message = " ".join(f"word{at}" for at in range(size // 3))
    turn = a_turn(message, history=tuple(PastMessage("user", f"{at} said. " * 80) for at in range(20)))
    for agent in ("dialogue", "noor", "nova", "mind"):
        texts = {text.stem: text.read_text(encoding="utf-8") for text in Path(str(folder / "agents" / agent)).glob("*.md")}
        own = AGENT.model_copy(update={"agent": agent, "prompts": texts, "bootstrap": bootstrap})
        for purpose in {"router", "final", "classify", "intent", "preflight", "reflect"} & set(texts):
            messages = opening_messages(purpose, own, turn, Fault("broken", "wrong"), budget)
            assert prompt_size(messages, purpose, 10_000) <= budget
            if size <= 200:
                assert blocks(messages)["message"] == message
        if "tools" in texts:
            call = ToolCall(name="read_neo4j_cypher", arguments='{"query": "MATCH (n) RETURN n"}')
            rounds = [(Move(calls=(call,)), (CallResult(call, "row " * 3_000, "rows"),)) for _ in range(6)]
            inquiry = Inquiry("A", "list", TOOLS, new_mark(turn), rounds)
            messages = inquiry_messages(own, turn, inquiry, budget)
            assert prompt_size(messages, "tools", 10_000) <= budget
            if size == 5:
                assert blocks(messages)["message"] == message


def test_tools_are_described_more_briefly_before_one_is_left_out() -> None:
    names = [tool["function"]["name"] for tool in TOOLS]
    shortened = fit_tools(TOOLS, 2_000)
    assert [tool["function"]["name"] for tool in shortened] == names
    assert len(json.dumps(shortened)) < len(json.dumps(TOOLS))
    assert fit_tools(TOOLS, 100_000) == list(TOOLS)
    assert [tool["function"]["name"] for tool in fit_tools(TOOLS, 1_000)] == names[: len(fit_tools(TOOLS, 1_000))]


def test_a_prompt_for_an_endpoint_without_schemas_lists_the_keys_at_its_end() -> None:
    asked = with_keys(router_messages(AGENT, a_turn(), None, 4_000), SCHEMAS["router"])[-1]["content"]
    assert asked.endswith(
        'with exactly these keys: {"thought_process": string, "decision": "respond_directly" or "query_memory", '
        '"key_phrases": [string, ...], "direct_response": string or null, '
        '"tier": "flash" or "haiku" or "sonnet" or "quality"}'
    )
