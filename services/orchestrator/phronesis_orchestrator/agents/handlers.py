"""What is checked of a tenant's own agent before it is published: that turns here could run it as it says."""

from __future__ import annotations

from phronesis_bus import Bus, Call, serve
from phronesis_contracts.agents import KEEP_AGENT, PUBLISH_AGENT_TOOL, AgentPublished, AgentRefused, PublishAgent

from ..models.reasoner import Probed, Reasoner
from ..turns.ports import Neighbours


class AgentHandlers:
    """The handlers. `reasoner`: what answers turns."""

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
