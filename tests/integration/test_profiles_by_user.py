"""What the orchestrator keeps of agents' profiles: never one tenant's or one arm's for another."""

from __future__ import annotations

from collections import Counter

import pytest

from phronesis_bus import Call, serve
from phronesis_contracts import NotFound, Unavailable
from phronesis_contracts.instructions import AGENT_GET, AgentProfile, AgentRef
from phronesis_orchestrator.turns.ports import BusNeighbours
from tests.support.bus import connected, somebody
from tests.support.servers import NatsServer


async def test_a_profile_is_kept_by_tenant_and_for_who_is_in_an_experiment_by_user(nats_server: NatsServer) -> None:
    ann = somebody()
    bob, other = ann.model_copy(update={"user": "bob"}), somebody()
    asked: Counter[str] = Counter()
    arms = {"on": True, "there": True}

    async def agent_get(call: Call, request: AgentRef) -> AgentProfile:
        if not arms["there"]:
            raise Unavailable("away")
        if request.agent != "noor":
            raise NotFound("no such agent")
        asked[call.who.user] += 1
        of_it = {"tone": call.who.user} if arms["on"] and call.who.tenant == ann.tenant else {}
        return AgentProfile(
            agent="noor", version="1", loop="tools", stages=("loop",), prompts={}, release=call.who.tenant, arms=of_it
        )

    async with connected(nats_server, "instructions", "orchestrator") as (instructions, orchestrator):
        await serve(instructions, AGENT_GET, agent_get)
        neighbours = BusNeighbours(orchestrator)
        for _ in range(2):
            told = [await neighbours.agent(who, "noor") for who in (ann, bob, other)]
            assert [one.arms.get("tone") for one in told] == [ann.user, "bob", None]
            assert [one.release for one in told] == [ann.tenant, ann.tenant, other.tenant]
        assert set(asked.values()) == {1}
        arms["on"] = False
        neighbours.forget_agents()
        assert [(await neighbours.agent(who, "noor")).arms for who in (ann, bob, ann, bob)] == [{}] * 4
        assert asked[ann.user] + asked["bob"] == 4
        neighbours.forget_agents()
        arms["there"] = False
        assert (await neighbours.agent(bob, "noor")).release == ann.tenant
        with pytest.raises(Unavailable):
            await neighbours.agent(somebody(), "noor")
