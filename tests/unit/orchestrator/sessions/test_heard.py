"""What is kept for the start of a session, against writes whose news is late, overtaken or lost."""

from __future__ import annotations

import asyncio

import pytest

from phronesis_bus import News
from phronesis_contracts import Principal, ServiceError, Unavailable
from phronesis_contracts.constitution.lists import LIST_FOUNDATION
from phronesis_contracts.constitution.registry import Layer
from phronesis_contracts.constitution.session import StartSession
from phronesis_contracts.constitution.writes import ConstitutionChanged, NodeNews, Operation
from phronesis_orchestrator.sessions import start as start_module
from phronesis_orchestrator.sessions.start import HeardChanges, Parts, Sessions
from tests.unit.orchestrator.sessions.fakes import Stage, caller

SECOND = 1.0


async def test_late_news_is_waited_for() -> None:
    heard = HeardChanges()
    await heard.reach("acme", 3, SECOND)
    waiting = asyncio.create_task(heard.reach("acme", 5, 30 * SECOND))
    await asyncio.sleep(0)
    heard.add("acme", 4)
    await asyncio.sleep(0)
    assert not waiting.done()
    heard.add("acme", 5)
    assert await waiting


async def test_news_that_overtook_other_news_does_not_stand_for_it() -> None:
    heard = HeardChanges()
    await heard.reach("acme", 3, SECOND)
    heard.add("acme", 5)
    assert not await heard.reach("acme", 5, 0.01)


async def test_news_that_was_overtaken_closes_the_gap() -> None:
    heard = HeardChanges()
    await heard.reach("acme", 3, SECOND)
    heard.add("acme", 5)
    heard.add("acme", 4)
    assert await heard.reach("acme", 5, 0.01)


async def test_lost_news_is_waited_for_once() -> None:
    heard = HeardChanges()
    await heard.reach("acme", 3, SECOND)
    assert [await heard.reach("acme", 4, 0.01) for _ in range(2)] == [False, True]


async def test_news_of_a_tenant_of_which_nothing_is_kept_is_not_counted() -> None:
    heard = HeardChanges()
    heard.add("acme", 9)
    assert await heard.reach("acme", 12, 0.01)


class Counted:
    """Sessions on a graph that counts its changes."""

    def __init__(self) -> None:
        self.stage, self.number, self.caller = Stage(), 7, caller()
        self.failure: ServiceError | None = None
        stage = self.stage
        self.sessions = Sessions(Parts(stage.owners), stage.workload, stage.calendars, stage.metrics, changes=self._count)

    async def _count(self, who: Principal) -> int:
        if self.failure:
            raise self.failure
        return self.number

    async def loads(self) -> int:
        """How often the foundation was asked for after one more start."""
        await self.sessions.start(self.caller, StartSession())
        [times] = self.stage.owners.times(LIST_FOUNDATION)
        return times

    async def tell(self, type: str, layer: Layer, number: int) -> None:
        """News of a new node."""
        node = NodeNews(id="n", type=type, layer=layer, operation=Operation.CREATE, version=1)
        change = ConstitutionChanged(nodes=(node,), number=number)
        await self.sessions.on_constitution_changed(News(self.caller.who.tenant, "n", 1), change)


async def test_what_is_kept_is_loaded_anew_where_the_news_of_a_write_does_not_come(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(start_module, "_NEWS_WAIT", 0.01)
    counted = Counted()
    assert [await counted.loads() for _ in range(2)] == [1, 1]
    counted.number = 8
    assert [await counted.loads() for _ in range(2)] == [2, 2]


async def test_what_a_write_does_not_touch_is_kept_once_its_news_has_come() -> None:
    counted = Counted()
    await counted.loads()
    counted.number = 8
    await counted.tell("observation", Layer.TRACK, 8)
    assert await counted.loads() == 1


async def test_what_is_kept_is_served_where_the_graph_does_not_count() -> None:
    counted = Counted()
    await counted.loads()
    counted.failure = Unavailable("the graph is away")
    assert await counted.loads() == 1
