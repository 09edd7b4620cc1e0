"""The handlers of the instructions service, on a store in memory."""

from __future__ import annotations

import asyncio

import pytest

from phronesis.bus import Call
from phronesis.contracts import NotFound, Principal, Unavailable
from phronesis.contracts.instructions import AgentProfile, AgentRef
from phronesis.instructions.adapters.files import agents
from phronesis.instructions.domain import AgentContent
from phronesis.instructions.handlers import Handlers

DIALOGUE = next(content for content in agents() if content.agent == "dialogue")
CALL = Call(Principal(tenant="acme", user="ann"), "orchestrator")
ASKED = AgentRef(agent="dialogue")


class MemoryStore:
    """Profiles in a dictionary; it can be away for a number of tries."""

    def __init__(self, away: int = 0) -> None:
        self.away = away
        self.reads = 0
        self.profiles: dict[str, AgentProfile] = {}

    async def release(self, content: AgentContent) -> bool:
        if self.away:
            self.away -= 1
            raise Unavailable("away")
        fields = content.model_dump()
        profile = AgentProfile.model_validate(fields)
        changed = self.profiles.get(content.agent) != profile
        self.profiles[content.agent] = profile
        return changed

    async def profile(self, agent: str) -> AgentProfile | None:
        self.reads += 1
        return self.profiles.get(agent)

    async def ping(self) -> None:
        return None


class Clock:
    """Seconds that go on when they are told to."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


async def test_a_profile_is_read_once_while_it_is_cached() -> None:
    store, clock = MemoryStore(), Clock()
    handlers = Handlers(store, 5.0, clock)
    await handlers.load((DIALOGUE,), 0.001, lambda: None)
    first = await handlers.agent_get(CALL, ASKED)
    clock.now = 4.9
    assert (await handlers.agent_get(CALL, ASKED), store.reads) == (first, 1)


async def test_a_cached_profile_is_read_anew_after_its_time() -> None:
    store, clock = MemoryStore(), Clock()
    handlers = Handlers(store, 5.0, clock)
    await handlers.load((DIALOGUE,), 0.001, lambda: None)
    await handlers.agent_get(CALL, ASKED)
    clock.now = 5.0
    await handlers.agent_get(CALL, ASKED)
    assert store.reads == 2


@pytest.mark.req("N-231")
async def test_a_release_is_served_at_once() -> None:
    handlers = Handlers(MemoryStore(), 3600.0)
    await handlers.load((DIALOGUE,), 0.001, lambda: None)
    await handlers.agent_get(CALL, ASKED)
    await handlers.load((DIALOGUE.model_copy(update={"version": "1.1.0"}),), 0.001, lambda: None)
    assert (await handlers.agent_get(CALL, ASKED)).version == "1.1.0"


async def test_a_profile_that_was_read_before_a_release_is_not_cached_after_it() -> None:
    reading, go_on = asyncio.Event(), asyncio.Event()

    class SlowStore(MemoryStore):
        async def profile(self, agent: str) -> AgentProfile | None:
            found = await super().profile(agent)
            reading.set()
            await go_on.wait()
            return found

    handlers = Handlers(SlowStore(), 3600.0)
    await handlers.load((DIALOGUE,), 0.001, lambda: None)
    old = asyncio.create_task(handlers.agent_get(CALL, ASKED))
    await reading.wait()
    await handlers.load((DIALOGUE.model_copy(update={"version": "1.1.0"}),), 0.001, lambda: None)
    go_on.set()
    assert ((await old).version, (await handlers.agent_get(CALL, ASKED)).version) == (DIALOGUE.version, "1.1.0")


async def test_an_unknown_agent_is_not_found() -> None:
    handlers = Handlers(MemoryStore(), 5.0)
    await handlers.load((DIALOGUE,), 0.001, lambda: None)
    with pytest.raises(NotFound):
        await handlers.agent_get(CALL, AgentRef(agent="nobody"))


async def test_before_the_content_is_loaded_an_unknown_agent_is_only_late() -> None:
    handlers = Handlers(MemoryStore(), 5.0)
    with pytest.raises(Unavailable):
        await handlers.agent_get(CALL, ASKED)


async def test_loading_tries_again_until_the_store_is_there_and_tells_of_the_release_once() -> None:
    told: list[None] = []
    handlers = Handlers(MemoryStore(away=3), 5.0)
    await handlers.load((DIALOGUE,), 0.001, lambda: told.append(None))
    await handlers.load((DIALOGUE,), 0.001, lambda: told.append(None))
    await handlers.ready()
    assert len(told) == 1
