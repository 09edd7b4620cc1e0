"""What is said of the models that turns are answered with, and what is checked of a tenant's own agent before it is kept."""

from __future__ import annotations

import asyncio

from phronesis_bus import Bus, Call, serve
from phronesis_contracts.agents import KEEP_AGENT, PUBLISH_AGENT_TOOL, AgentPublished, AgentRefused, PublishAgent
from phronesis_contracts.ledger import MODELS_GET_TOOL, GetModels, ModelAbilities, ModelsFound

from ..settings import ModelSettings
from ..turns.ports import Neighbours
from .capabilities import CapabilityCache
from .completions import TryFailed
from .reasoner import Probed, Reasoner

_SECONDS = 25.0
"""Seconds to find out what an endpoint can do, where it is not known."""


class ModelHandlers:
    """The handlers. `reasoner`: what answers turns."""

    def __init__(self, reasoner: Reasoner, settings: ModelSettings) -> None:
        self._reasoner, self._settings = reasoner, settings

    async def models(self, call: Call, request: GetModels) -> ModelsFound:
        """The models, with what is known of each or found out now."""
        reasoner = self._reasoner
        if not isinstance(reasoner, Probed):
            return ModelsFound(reasoner=reasoner.name)
        found = await asyncio.gather(*(_abilities(reasoner.capabilities, model) for model in reasoner.models))
        return ModelsFound(
            reasoner=reasoner.name,
            profile=self._settings.model_profile.value,
            endpoint=reasoner.url,
            context_tokens=self._settings.context_tokens,
            models=tuple(found),
        )


async def _abilities(capabilities: CapabilityCache, model: str) -> ModelAbilities:
    try:
        async with asyncio.timeout(_SECONDS):
            able = await capabilities.of(model)
    except TryFailed as failed:
        return ModelAbilities(name=model, reached=False, problem=failed.detail)
    except TimeoutError:
        return ModelAbilities(name=model, reached=False, problem="the endpoint did not answer in time")
    return ModelAbilities(
        name=model,
        reached=True,
        structured=able.structured.value,
        tools=able.tools,
        streaming=able.streaming,
        context_tokens=able.context_tokens,
    )


async def serve_models(bus: Bus, reasoner: Reasoner, settings: ModelSettings) -> None:
    """Wire the handlers to the bus."""
    await serve(bus, MODELS_GET_TOOL, ModelHandlers(reasoner, settings).models)


class AgentHandlers:
    """Handlers of tenants' own agents: turns here have to be able to run them as they say. `reasoner`: what answers turns."""

    def __init__(self, neighbours: Neighbours, reasoner: Reasoner) -> None:
        self._neighbours, self._reasoner = neighbours, reasoner

    async def publish(self, call: Call, request: PublishAgent) -> AgentPublished:
        """Check an agent against this installation, and hand it to the owner of agents.

        Raises:
            AgentRefused: no such model is asked here.
            ServiceError: what the owner answered.
        """
        # Without a language model nothing can be said of a name; the agent then works by rules.
        if request.model is not None and isinstance(self._reasoner, Probed) and request.model not in self._reasoner.models:
            raise AgentRefused(f"no such model is set up here; there are {', '.join(self._reasoner.models)}", field="model")
        return await self._neighbours.ask(call.who, KEEP_AGENT, request, key=call.key)


async def serve_agents(bus: Bus, neighbours: Neighbours, reasoner: Reasoner) -> None:
    """Wire the handlers to the bus."""
    await serve(bus, PUBLISH_AGENT_TOOL, AgentHandlers(neighbours, reasoner).publish)
