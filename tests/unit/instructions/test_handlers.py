"""The handlers of the instructions service, on a store in memory."""

from __future__ import annotations

import asyncio

import pytest

from phronesis_bus import News
from phronesis_contracts import NotFound, Unavailable
from phronesis_contracts.instructions import AgentRef, Released, RetrieveInstructions
from phronesis_instructions.library.content import read_agents, read_matrix
from phronesis_instructions.library.handlers import LibraryCache, LibraryHandlers
from phronesis_instructions.library.texts import Platform
from tests.support.instructions import CALL, Clock, HashedArms, MemoryStore

DIALOGUE = next(content for content in read_agents() if content.agent == "dialogue")
ANALYST = DIALOGUE.model_copy(update={"agent": "analyst", "bootstrap": "tier1_bootstrap"})
ASKED = AgentRef(agent="dialogue")


def handlers_on(
    store: MemoryStore, seconds: float = 3600.0, clock: Clock | None = None
) -> tuple[LibraryHandlers, LibraryCache]:
    libraries = LibraryCache(store, seconds, clock or Clock())
    return LibraryHandlers(store, libraries, HashedArms()), libraries


@pytest.mark.req("D-T04")
async def test_a_profile_is_read_once_while_it_is_cached() -> None:
    store, clock = MemoryStore(), Clock()
    handlers, _ = handlers_on(store, 5.0, clock)
    await handlers.load((DIALOGUE,), 0.001, lambda: None)
    first = await handlers.agent_get(CALL, ASKED)
    clock.now = 4.9
    assert (await handlers.agent_get(CALL, ASKED), store.reads) == (first, 1)


async def test_a_cached_profile_is_read_anew_after_its_time() -> None:
    store, clock = MemoryStore(), Clock()
    handlers, _ = handlers_on(store, 5.0, clock)
    await handlers.load((DIALOGUE,), 0.001, lambda: None)
    await handlers.agent_get(CALL, ASKED)
    clock.now = 5.0
    await handlers.agent_get(CALL, ASKED)
    assert store.reads == 2


@pytest.mark.req("N-231")
async def test_a_release_is_served_at_once() -> None:
    handlers, _ = handlers_on(MemoryStore())
    await handlers.load((DIALOGUE,), 0.001, lambda: None)
    await handlers.agent_get(CALL, ASKED)
    await handlers.load((DIALOGUE.model_copy(update={"version": "1.1.0"}),), 0.001, lambda: None)
    assert (await handlers.agent_get(CALL, ASKED)).version == "1.1.0"


async def test_a_profile_that_was_read_before_a_release_is_not_cached_after_it() -> None:
    reading, go_on = asyncio.Event(), asyncio.Event()

    class SlowStore(MemoryStore):
        async def platform(self) -> Platform:
            found = await super().platform()
            reading.set()
            await go_on.wait()
            return found

    handlers, _ = handlers_on(SlowStore())
    await handlers.load((DIALOGUE,), 0.001, lambda: None)
    old = asyncio.create_task(handlers.agent_get(CALL, ASKED))
    await reading.wait()
    await handlers.load((DIALOGUE.model_copy(update={"version": "1.1.0"}),), 0.001, lambda: None)
    go_on.set()
    assert ((await old).version, (await handlers.agent_get(CALL, ASKED)).version) == (DIALOGUE.version, "1.1.0")


async def test_an_unknown_agent_is_not_found() -> None:
    handlers, _ = handlers_on(MemoryStore())
    await handlers.load((DIALOGUE,), 0.001, lambda: None)
    with pytest.raises(NotFound):
        await handlers.agent_get(CALL, AgentRef(agent="nobody"))


async def test_before_the_content_is_loaded_an_unknown_agent_is_only_late() -> None:
    handlers, _ = handlers_on(MemoryStore())
    with pytest.raises(Unavailable):
        await handlers.agent_get(CALL, ASKED)


async def test_loading_tries_again_until_the_store_is_there_and_tells_of_the_release_once() -> None:
    told: list[None] = []
    handlers, _ = handlers_on(MemoryStore(away=3))
    await handlers.load((DIALOGUE,), 0.001, lambda: told.append(None))
    await handlers.load((DIALOGUE,), 0.001, lambda: told.append(None))
    await handlers.ready()
    assert len(told) == 1


@pytest.mark.req("N-017", "N-230", "NC-008", "T-010")
async def test_tier_1_is_read_once_for_the_start_and_twenty_messages() -> None:
    store = MemoryStore()
    handlers, _ = handlers_on(store)
    await handlers.load((read_matrix(), ANALYST), 0.001, lambda: None)
    await handlers.tier_1()
    for _ in range(20):
        await handlers.agent_get(CALL, AgentRef(agent="analyst"))
    assert store.reads == 1


@pytest.mark.req("N-018")
async def test_an_agent_that_names_a_bootstrap_has_its_text_and_the_release_and_another_has_none() -> None:
    handlers, _ = handlers_on(MemoryStore())
    await handlers.load((read_matrix(), DIALOGUE, ANALYST), 0.001, lambda: None)
    analyst, dialogue = [await handlers.agent_get(CALL, AgentRef(agent=name)) for name in ("analyst", "dialogue")]
    assert (analyst.bootstrap, dialogue.bootstrap) == (read_matrix().tier1, "")
    assert (analyst.release, analyst.arms) == ("4.0.0", {})


@pytest.mark.req("N-023")
async def test_without_an_active_tier_1_nothing_is_ready_and_no_analyst_has_a_profile() -> None:
    store = MemoryStore()
    handlers, _ = handlers_on(store)
    await handlers.load((ANALYST,), 0.001, lambda: None)
    with pytest.raises(Unavailable, match="tier1_bootstrap"):
        await handlers.tier_1()
    with pytest.raises(Unavailable):
        await handlers.agent_get(CALL, AgentRef(agent="analyst"))


@pytest.mark.req("N-231")
async def test_news_of_a_release_by_another_copy_is_read_at_once() -> None:
    store = MemoryStore()
    handlers, libraries = handlers_on(store)
    await handlers.load((read_matrix(), ANALYST), 0.001, lambda: None)
    await handlers.agent_get(CALL, AgentRef(agent="analyst"))
    await store.release(read_matrix().model_copy(update={"tier1": "Anew.", "version": "4.0.1"}))
    await libraries.on_released(News("system", "n", 1), Released(tags=("tier1_bootstrap",), version="4.0.1"))
    profile = await handlers.agent_get(CALL, AgentRef(agent="analyst"))
    assert (profile.bootstrap, profile.release) == ("Anew.", "4.0.1")


@pytest.mark.req("N-176")
async def test_what_an_analyst_is_told_at_first_holds_no_element_of_tier_3() -> None:
    handlers, _ = handlers_on(MemoryStore())
    await handlers.load((read_matrix(), ANALYST), 0.001, lambda: None)
    profile = await handlers.agent_get(CALL, AgentRef(agent="analyst"))
    told = "\n".join((profile.bootstrap, *profile.prompts.values(), *profile.directives.values()))
    assert [one.tag for one in read_matrix().elements if one.tier == 3 and one.content in told] == []


@pytest.mark.req("N-122")
async def test_without_its_store_a_retrieval_is_unavailable() -> None:
    class AwayStore(MemoryStore):
        async def platform(self) -> Platform:
            raise Unavailable("away")

    handlers, _ = handlers_on(AwayStore())
    with pytest.raises(Unavailable):
        await handlers.retrieve_instructions(CALL, RetrieveInstructions(mode="A"))
