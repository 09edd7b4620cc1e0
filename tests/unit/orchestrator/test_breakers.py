"""A service that failed again and again is not asked for a while, and turns that wait for it are not claimed."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any

import pytest

from phronesis_bus.envelope import deadline
from phronesis_contracts import Busy, NotFound, Nothing, Principal, ServiceError, TimedOut, Unavailable
from phronesis_contracts.media import MEDIA_GET, Media, MediaKind
from phronesis_contracts.memory import PROFILE_GET, Profile
from phronesis_orchestrator.turns import ports
from phronesis_orchestrator.turns.ports import BusNeighbours, ServiceBreakers

ANN = Principal(tenant="acme", user="ann")
FOUND = Media(id="m", name="a.txt", type="text/plain", kind=MediaKind.DOCUMENT, size=1, sha256="0" * 64)


class World:
    """Neighbours whose services answer what a script says."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now, self.asked = 0.0, 0
        self.answer: Any = FOUND
        self.bus = SimpleNamespace(name="orchestrator", connected=True)
        self.breakers = ServiceBreakers(failures=3, rest=10, clock=lambda: self.now)
        self.neighbours = BusNeighbours(self.bus, breakers=self.breakers)  # type: ignore[arg-type]
        monkeypatch.setattr(ports, "ask", self._ask)

    async def _ask(self, *given: Any, **more: Any) -> Any:
        self.asked += 1
        if isinstance(self.answer, ServiceError):
            raise self.answer
        return self.answer

    async def media(self, times: int = 1) -> list[str]:
        """Codes of questions to the media service; empty for an answer."""
        codes = []
        for _ in range(times):
            try:
                await self.neighbours.media(ANN, "m")
                codes.append("")
            except ServiceError as error:
                codes.append(error.code)
        return codes


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    return World(monkeypatch)


async def test_a_service_that_failed_again_and_again_is_not_asked_until_one_call_finds_it_back(world: World) -> None:
    world.answer = Unavailable("away", retry_after=1)
    assert await world.media(5) == ["unavailable"] * 5
    assert (world.asked, world.breakers.away(), world.breakers.states()) == (3, ("media",), {"media": "open"})
    world.now = 11
    assert (world.breakers.away(), world.breakers.states()) == ((), {"media": "half_open"})
    world.answer = FOUND
    assert await world.media(2) == ["", ""]
    assert (world.asked, world.breakers.states()) == (5, {})


async def test_a_probe_that_fails_keeps_it_open(world: World) -> None:
    world.answer = Unavailable("away", retry_after=1)
    await world.media(3)
    world.now = 11
    await world.media(2)
    assert (world.asked, world.breakers.away()) == (4, ("media",))


async def test_while_the_probe_is_on_the_way_no_turn_is_claimed_for_it(world: World) -> None:
    world.answer = Unavailable("away", retry_after=1)
    await world.media(3)
    world.now = 11
    breaker = world.breakers.of("media")
    era = breaker.enter()
    assert world.breakers.away() == ("media",)
    breaker.leave(era, healthy=True)
    assert world.breakers.away() == ()


@pytest.mark.parametrize("answer", [NotFound(), Busy(), Unavailable("no such page")], ids=lambda error: error.code)
async def test_a_service_that_refuses_or_has_too_much_to_do_works(world: World, answer: ServiceError) -> None:
    world.answer = answer
    await world.media(10)
    assert (world.asked, world.breakers.away()) == (10, ())


async def test_a_question_that_had_less_than_its_time_says_nothing_of_the_service(world: World) -> None:
    world.answer = TimedOut()
    for _ in range(10):
        with pytest.raises(TimedOut):
            await world.neighbours.profile(ANN)
    assert world.breakers.away() == ()
    await world.media(3)
    assert world.breakers.away() == ("media",)


async def test_a_broker_that_is_away_says_nothing_of_the_services(world: World) -> None:
    world.answer, world.bus.connected = Unavailable("the broker is away", retry_after=1), False
    await world.media(10)
    assert world.breakers.away() == ()
    with pytest.raises(Unavailable) as away:
        await world.neighbours.media(ANN, "m")
    assert away.value.dependency == "nats"


async def test_a_question_that_a_turn_has_less_time_for_says_nothing_of_the_service(world: World) -> None:
    world.answer = TimedOut()
    token = deadline.set(time.time() + 1.0)
    try:
        await world.media(10)
    finally:
        deadline.reset(token)
    assert world.breakers.away() == ()


async def test_one_service_that_is_away_leaves_the_others_asked(world: World) -> None:
    world.answer = Unavailable("away", retry_after=1)
    await world.media(3)
    world.answer = Profile()
    assert await world.neighbours.ask(ANN, PROFILE_GET, Nothing()) == Profile()


async def test_an_error_says_which_service_did_not_answer(world: World) -> None:
    world.answer = Unavailable("away", retry_after=1)
    with pytest.raises(Unavailable) as away:
        await world.neighbours.media(ANN, "m")
    assert away.value.dependency == MEDIA_GET.service == "media"
    world.answer = NotFound()
    with pytest.raises(NotFound) as unknown:
        await world.neighbours.media(ANN, "m")
    assert unknown.value.dependency is None
