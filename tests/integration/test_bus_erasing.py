"""What is forgotten goes out of the streams: the lines of one turn, and the parked messages that name it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from uuid import uuid4

import pytest

from phronesis_bus import Bus, erase_parked, erase_shown, show
from phronesis_bus.envelope import PARKED_FROM
from phronesis_bus.outbox import publish
from phronesis_contracts import Unavailable
from phronesis_contracts.orchestrator import PROGRESS, TURN_ENDED, TurnEndedNews, TurnProgress, TurnStatus
from tests.support.bus import broker, connected, eventually, jetstream, somebody
from tests.support.servers import NatsServer


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[NatsServer]:
    async with broker(tmp_path) as server:
        yield server


@pytest.fixture
async def orchestrator(server: NatsServer) -> AsyncIterator[Bus]:
    async with connected(server, "orchestrator") as (bus,):
        yield bus


async def subjects(server: NatsServer, stream: str) -> dict[str, int]:
    """How many messages a stream holds, by subject."""
    async with connected(server, "declare") as (admin,):
        found = await jetstream(admin, f"STREAM.INFO.{stream}", subjects_filter=">")
    return dict(found["state"].get("subjects") or {})


async def park(memory: Bus, tenant: str, turn: str) -> None:
    """Park the end of a turn, as memory does with one that it cannot take."""
    ended = TurnEndedNews(
        turn_id=turn, conversation_id="c", user="ann", agent="dialogue", status=TurnStatus.COMPLETED, user_text="hi"
    )
    headers = {PARKED_FROM: TURN_ENDED.on(tenant)}
    await publish(memory, f"parked.{TURN_ENDED.durable('memory')}", ended.model_dump_json().encode(), headers)


async def test_the_lines_of_the_named_turns_go_and_those_of_others_stay(server: NatsServer, orchestrator: Bus) -> None:
    ann, bob = somebody(), somebody()
    gone, kept = uuid4().hex, uuid4().hex
    for who, turn in ((ann, gone), (ann, gone), (ann, kept), (bob, gone)):
        await show(orchestrator, who, PROGRESS, turn, TurnProgress(turn_id=turn, kind="phase", phase="routed"))

    async def four() -> bool:
        return sum((await subjects(server, "OUT")).values()) == 4

    await eventually(four)
    assert await erase_shown(orchestrator, PROGRESS, ann.tenant, ann.user, [gone, uuid4().hex]) == 2
    left = {PROGRESS.on(ann.tenant, ann.user, kept): 1, PROGRESS.on(bob.tenant, bob.user, gone): 1}
    assert await subjects(server, "OUT") == left


async def test_a_parked_message_goes_when_it_names_an_id_and_is_the_tenants(server: NatsServer, orchestrator: Bus) -> None:
    turn, other = str(uuid4()), str(uuid4())
    async with connected(server, "memory") as (memory,):
        for tenant, id in (("acme", turn), ("acme", other), ("zebra", turn)):
            await park(memory, tenant, id)
    assert await erase_parked(orchestrator, "acme", []) == 0
    assert await erase_parked(orchestrator, "acme", [turn[:8], turn]) == 1
    assert await erase_parked(orchestrator, "acme", [turn]) == 0
    assert sum((await subjects(server, "PARKED")).values()) == 2


@pytest.mark.verify
async def test_no_other_service_may_erase(server: NatsServer) -> None:
    who = somebody()
    async with connected(server, "memory") as (memory,):
        with pytest.raises(Unavailable):
            await erase_shown(memory, PROGRESS, who.tenant, who.user, [uuid4().hex])
