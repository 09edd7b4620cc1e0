"""The two calls for a plan, on endpoints that hold a model to a schema and on those that do not, and in little room."""

from __future__ import annotations

import json

import pytest

from phronesis_bus.tracing import Tracing
from phronesis_orchestrator.models.language_model import build_language_model
from phronesis_orchestrator.models.limits import ModelProfile
from phronesis_orchestrator.models.parsing import strict_object
from phronesis_orchestrator.models.reasoner import ChosenPlan, FormulatedPlan, PlanQuestion, WordMeaning
from phronesis_orchestrator.settings import ModelSettings
from phronesis_orchestrator.understanding.plan_forms import KINDS, Names, form_of
from phronesis_tokens import count
from tests.support.analysts import profile
from tests.support.chat import a_turn
from tests.support.endpoints import HOSTED, LLAMA_CPP, PLAIN, Endpoint
from tests.support.groq_server import Fault, groq_server

NAMES = Names(
    tuple(f"Type{n}" for n in range(4)),
    tuple(f"a_property_{n}" for n in range(12)),
    tuple(f"JOINS_{n}" for n in range(8)),
    (),
    tuple(range(2020, 2026)),
)
KNOWN = tuple(
    json.dumps({"property": name, "of": "Type0", "kind": "string", "values": ["A", "B"]}) for name in NAMES.properties
)
CHOICE = strict_object(
    kind={"type": "string", "enum": [*KINDS, "none"]},
    about={"type": "array", "items": {"type": "string", "enum": [*NAMES.types, *NAMES.properties]}},
    words={
        "type": "array",
        "items": strict_object(said={"type": "string"}, means={"type": "string", "enum": list(NAMES.properties)}),
    },
)
CONTEXT = 2_000


@pytest.mark.parametrize("endpoint", [HOSTED, LLAMA_CPP, PLAIN], ids=["hosted", "llama.cpp", "plain"])
@pytest.mark.parametrize("agent", ["dialogue", "noor", "maestro"])
async def test_both_calls_fit_two_thousand_tokens_on_every_endpoint(endpoint: Endpoint, agent: str) -> None:
    settings = ModelSettings(model_profile=ModelProfile.LOCAL, context_tokens=CONTEXT, model="openai/gpt-oss-20b")
    turn = a_turn("Which of the things have the most trouble in 2024? " * 3, agent=profile(agent))
    async with groq_server(endpoint=endpoint) as server:
        model = build_language_model(
            "openai", "k", Tracing("orchestrator"), settings.model_copy(update={"model_url": server.openai_url})
        )
        server.fail(
            "understand", Fault(content='{"kind": "rank", "about": [], "words": [{"said": "trouble", "means": "Type0"}]}')
        )
        server.fail("formulate", Fault(content="{}", times=9))
        try:
            chosen = await model.understand(turn, PlanQuestion(KNOWN, CHOICE))
            for kind in KINDS:
                await model.formulate(turn, PlanQuestion(KNOWN, form_of(kind, NAMES)))
        finally:
            await model.close()
    assert chosen.value == ChosenPlan(kind="rank", words=(WordMeaning(said="trouble", means="Type0"),))
    for call in server.calls:
        assert call.request is not None
        prompt = "\n".join(str(message["content"]) for message in call.request["messages"])
        assert count(prompt, 10_000) + 500 <= CONTEXT
        assert "Which of the things have the most trouble" in prompt
        enforced = "response_format" in call.request
        assert ("with exactly these keys" in prompt) is not enforced


async def test_a_plan_is_taken_as_it_was_written() -> None:
    async with groq_server() as server:
        server.fail("formulate", Fault(content='Here it is: {"of": {"type": "Type0", "years": [2024]}, "limit": null}'))
        model = build_language_model("groq", "k", Tracing("orchestrator"), ModelSettings(model_url=server.groq_url))
        try:
            answer = await model.formulate(a_turn(agent=profile("noor")), PlanQuestion((), form_of("rank", NAMES)))
        finally:
            await model.close()
    assert answer.value == FormulatedPlan(plan={"of": {"type": "Type0", "years": [2024]}, "limit": None})
