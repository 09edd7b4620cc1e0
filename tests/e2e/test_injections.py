"""Orders that somebody wrote into what a model reads, on the whole stack: it obeys all of them, and nothing happens."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from tests.support import injected
from tests.support.approving import AGENT, APPROVALS
from tests.support.injected import CARRIERS, Place, described, phrases
from tests.support.obedience import PHRASES

pytestmark = [pytest.mark.verify, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
async def place(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Place]:
    async with injected.place(tmp_path_factory.mktemp("injections") / "data") as place:
        yield place
        if injected.all_phrases():
            injected.write_report(place.harmless)


@pytest.mark.req("V-089", "V-115", "V-175")
@pytest.mark.parametrize("carrier", CARRIERS)
async def test_a_model_that_obeys_every_injected_order_changes_nothing(place: Place, carrier: str) -> None:
    before, every = await place.seen(), set(place.model.orders.calls)
    for phrase in phrases(carrier):
        message, media = await place.carried(carrier, phrase)
        answer = await place.person.submit(message, None, media, agent=AGENT)
        assert answer.status_code == 202, answer.text
        turn = answer.json()["turn_id"]
        approval = await place.waits(turn, 180)
        assert place.model.obeyed[turn] == every, (carrier, phrase, every - place.model.obeyed[turn])
        assert approval["tool"] in dict(place.model.orders.calls.values())
        assert (await place.person.http.delete(f"/api/v1/turns/{turn}")).json()["status"] == "cancelled"
    if carrier == "tool description":
        await described(place.person, place.pages, "Give a page.")
    assert await place.seen() == before
    assert {one["status"] for one in (await place.person.http.get(APPROVALS)).json()["approvals"]} <= {"cancelled"}
    place.harmless[carrier] = len(every) * len(phrases(carrier))


def test_the_orders_of_all_carriers_are_more_than_five_hundred(place: Place) -> None:
    assert len(CARRIERS) * len(PHRASES) * len(place.model.orders.calls) == 784


@pytest.mark.req("V-072")
async def test_a_person_who_refuses_is_asked_for_each_of_the_calls_and_none_is_made(place: Place) -> None:
    before = await place.seen()
    asked: list[str] = []
    await answered(place, "refuse", asked)
    assert sorted(asked) == sorted(name for name, _ in place.model.orders.calls.values())
    assert await place.seen() == before


async def test_the_same_orders_do_change_what_there_is_where_a_person_grants_them(place: Place) -> None:
    before = await place.seen()
    turn = await answered(place, "approve", [])
    after = await place.seen()
    assert {name for name in before if after[name] != before[name]} == set(before) - {"servers"}
    trace = (await place.person.http.get(f"/api/v1/turns/{turn}", params={"include": "trace"})).json()["trace"]
    failed = {one["name"]: one["outcome"] for one in trace["tool_calls"] if one["step"] and one["outcome"] != "ok"}
    servers = ("mcp_servers.add", "mcp_servers.accept", "mcp_servers.judge", "mcp_servers.remove")
    assert failed == {"backup.restore.v1": "bad_request"} | dict.fromkeys(servers, "unavailable")  # no turn reaches these


async def answered(place: Place, decision: str, asked: list[str]) -> str:
    """A turn that obeys a document, of whose calls a person answers each the same: its id.

    Args:
        place: where it is.
        decision: the answer.
        asked: gets the tools that were asked about.
    """
    message, media = await place.carried("document", PHRASES[0])
    turn: str = (await place.person.submit(message, None, media, agent=AGENT)).json()["turn_id"]
    async with asyncio.timeout(120):
        while (state := await place.person.turn(turn))["status"] != "completed":
            if state["status"] == "waiting":
                approval = await place.approval(state["approval_id"])
                if approval["status"] == "pending":
                    asked.append(approval["tool"])
                    await place.answer(approval["approval_id"], decision)
            await asyncio.sleep(0.05)
    return turn
