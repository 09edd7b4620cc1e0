"""What tests of the language model share: a turn, an agent, and a model on the scripted server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from phronesis_bus.tracing import Tracing
from phronesis_contracts.instructions import AgentProfile
from phronesis_contracts.memory import AugmentedMemoryContext, ContextItem, ItemKind
from phronesis_contracts.orchestrator import Directive
from phronesis_orchestrator.models.calls import RetryPolicy
from phronesis_orchestrator.models.client import ChatClient
from phronesis_orchestrator.models.language_model import LanguageModel
from phronesis_orchestrator.models.limits import PROFILES, Breaker, CallLimits, Limits, ModelProfile, call_limits
from phronesis_orchestrator.models.reasoner import TurnContext
from tests.support.groq_server import GroqServer

KEY = "gsk-a-secret-key"
AGENT = AgentProfile(
    agent="dialogue",
    version="1",
    loop="router",
    stages=(),
    prompts={
        "router": "Decide. Stance: {{directive}}. Answer in JSON: {{schema}}\n{{profile}}{{history}}{{input}}",
        "final": "Answer in JSON: {{schema}}\n{{history}}{{memory}}{{draft}}{{input}}",
        "repair": "Not good: {{wrong}}. Again, as JSON.",
    },
)
MEMORY = AugmentedMemoryContext(
    user_id="u",
    key_phrases=("heat",),
    concepts=(ContextItem(id="1", kind=ItemKind.NODE, title="Heat Networks", text="Pipes of hot water.", score=0.9, hop=0),),
)
REPLY = {"user_response": "Pipes.", "next_agent_directive": "focused_analyst", "directive_reasoning": "figures"}


def a_turn(text: str = "What is the heat network for?", **changes: Any) -> TurnContext:
    """A turn with this text."""
    given: dict[str, Any] = {"agent": AGENT, "profile": {}, "history": (), "directive": Directive.CURIOUS_EXPLORER}
    return TurnContext(**{**given, "final_input": text, "user_text": text, **changes})


def limits_of(light: CallLimits, deep: CallLimits | None = None) -> Limits:
    """Limits that are the same for every purpose of a model; what is tried once stays so."""
    known = call_limits(ModelProfile.HOSTED, "light", "deep", 16_000)
    tries = PROFILES[ModelProfile.HOSTED].tries
    return {
        purpose: replace(light if one.model == "light" else deep or light, tries=min(one.tries, tries))
        for purpose, one in known.items()
    }


def quick(model: str) -> RetryPolicy:
    """Patience that does not wait long."""
    return RetryPolicy(Breaker(model), backoff=0.01)


@asynccontextmanager
async def reasoning(
    server: GroqServer, provider: Any = "groq", seconds: float = 5.0, **changes: Any
) -> AsyncIterator[LanguageModel]:
    """A model on the scripted server, with quick retries.

    Args:
        changes: `router` and `final`, the limits of the light and of the other model; and arguments of `LanguageModel`.
    """
    limits = CallLimits("openai/gpt-oss-20b", seconds=seconds, max_tokens=500, effort="low")
    client = ChatClient(provider, KEY, server.groq_url if provider == "groq" else server.openai_url)
    of_all = limits_of(changes.pop("router", limits), changes.pop("final", limits))
    given: dict[str, Any] = {"limits": of_all, "budget": 4_000, "patience": quick}
    model = LanguageModel(client, **{"tracing": Tracing("orchestrator"), **given, **changes})
    try:
        yield model
    finally:
        await model.close()
