"""The router of `phronesis[faststream]`, in an application of its own on the real broker."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest

from phronesis.faststream import PhronesisRouter, make_broker
from phronesis.models import NewBusKey
from phronesis_bus import Bus, Call, serve, show, take
from phronesis_contracts import BadRequest, Nothing, Unavailable
from phronesis_contracts.memory import PROFILE_GET_TOOL, RECALL_TOOL, Recall, Recalled
from phronesis_contracts.orchestrator import PROGRESS, TURN, SubmitTurn, TurnProgress
from tests.support.bus import connected
from tests.support.outside import access, admitting
from tests.support.servers import NatsServer


@pytest.fixture(scope="module")
async def server(nats_server: NatsServer) -> AsyncIterator[NatsServer]:
    async with admitting(nats_server):
        yield nats_server


@pytest.fixture(scope="module")
async def services(server: NatsServer) -> AsyncIterator[dict[str, Bus]]:
    names = ("gateway", "orchestrator", "memory")
    async with connected(server, *names) as found:
        yield dict(zip(names, found, strict=True))


@pytest.fixture
def make_key(server: NatsServer, services: dict[str, Bus]) -> Callable[..., NewBusKey]:
    """Keys of the bus, as the gateway would make them."""

    def make(**stated: object) -> NewBusKey:
        who, made = access(services["gateway"], **stated)
        login = {"nats_user": made.user, "nats_password": made.password, "token": made.token, "inbox": made.inbox}
        return NewBusKey(id=who.key or "", tenant=who.tenant, user=who.user, role=who.role, servers=(server.url,), **login)

    return make


@pytest.fixture(scope="module")
async def recalls(services: dict[str, Bus]) -> list[tuple[Call, Recall]]:
    """What reaches the owner of `recall`."""
    calls: list[tuple[Call, Recall]] = []

    async def recall(call: Call, request: Recall) -> Recalled:
        calls.append((call, request))
        if request.query == "wrong":
            raise BadRequest("that is wrong", field="query")
        return Recalled(items=())

    await serve(services["memory"], RECALL_TOOL, recall)
    return calls


async def test_a_tool_is_called_with_typed_values_and_errors(
    make_key: Callable[..., NewBusKey], recalls: list[tuple[Call, Recall]]
) -> None:
    key = make_key()
    broker, router = make_broker(key, logger=None), PhronesisRouter(key)
    broker.include_router(router)
    async with broker:
        assert await router.ask(RECALL_TOOL, Recall(query="x"), key="k1") == Recalled(items=())
        with pytest.raises(BadRequest) as caught:
            await router.ask(RECALL_TOOL, Recall(query="wrong"))
    call, request = recalls[-2]
    assert (call.who.user, call.service, call.key, request) == (key.user, f"bus/{key.user}", "k1", Recall(query="x"))
    assert caught.value.body() == {"code": "bad_request", "status": 400, "detail": "that is wrong", "field": "query"}


async def test_a_tool_that_nobody_serves_or_that_is_asked_before_the_start_is_unavailable(
    make_key: Callable[..., NewBusKey],
) -> None:
    key = make_key()
    broker, router = make_broker(key, logger=None), PhronesisRouter(key)
    broker.include_router(router)
    with pytest.raises(Unavailable):
        await router.ask(PROFILE_GET_TOOL, Nothing())
    async with broker:
        with pytest.raises(Unavailable):
            await router.ask(PROFILE_GET_TOOL, Nothing())


async def test_a_turn_is_handed_in_and_its_progress_reaches_a_typed_subscriber(
    make_key: Callable[..., NewBusKey], services: dict[str, Bus]
) -> None:
    orders: list[SubmitTurn] = []

    async def turn(call: Call, request: SubmitTurn) -> None:
        orders.append(request)
        accepted = TurnProgress(turn_id=submitted[0], kind="accepted")
        await show(services["orchestrator"], call.who, PROGRESS, submitted[0], accepted)

    key = make_key()
    broker, router = make_broker(key, logger=None), PhronesisRouter(key)
    heard: asyncio.Queue[TurnProgress] = asyncio.Queue()
    submitted: list[str] = []

    @router.progress()
    async def shown(progress: TurnProgress) -> None:
        await heard.put(progress)

    broker.include_router(router)
    async with broker:
        await broker.start()
        submitted.append(await router.submit("Which projects are late?", key="once", agent="noor"))
        await take(services["orchestrator"], TURN, turn)
        async with asyncio.timeout(10):
            found = await heard.get()
    assert found == TurnProgress(turn_id=submitted[0], kind="accepted")
    assert orders == [SubmitTurn(idempotency_key="once", text="Which projects are late?", agent="noor")]
