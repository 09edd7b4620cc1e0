"""The stores' half of the table: each connection between a service and what it stands on, broken in each way."""

from __future__ import annotations

from collections.abc import Mapping

from tests.faults.measure import Answer, Row, cell, someone_who_knows
from tests.faults.model_part import Said
from tests.faults.stack import FaultStack
from tests.support.documents import pdf
from tests.support.people import Person
from tests.support.tcp_proxy import Mode

LONGEST = 20.0
"""Seconds in which the client has its answer, whatever store is broken."""
NAMES: Mapping[Mode, str] = {
    "refuse": "refuses",
    "reset": "resets",
    "stall": "hangs (half-open)",
    "slow": "each piece comes five seconds late",
}
_PARTS: Mapping[str, frozenset[str]] = {
    "memory to Postgres": frozenset({"profile", "vector", "text", "content", "memory"}),
    "memory to the embedding service": frozenset({"vector", "memory"}),
    "memory to NATS": frozenset({"profile", "memory", "graph"}),
    "graph to its store": frozenset({"graph", "memory"}),
    "graph to NATS": frozenset({"graph", "memory"}),
    "instructions to Postgres": frozenset({"instructions"}),
    "instructions to NATS": frozenset({"instructions"}),
    "media to NATS": frozenset({"media"}),
}
"""What a reply may be marked with; a connection that is not here can be answered with a refusal alone, or in full."""


async def store_part(stack: FaultStack, say: Said, links: tuple[str, ...]) -> None:
    """Measure the connections `links`, one cell after the other."""
    person = await someone_who_knows(stack.people)
    media = (await person.uploaded("note.pdf", pdf([["The note says that the observatory has a red door."]])),)
    for link in links:
        for mode in NAMES:
            say(await store_cell(stack, person, link, mode, media if link == "media to NATS" else ()))


async def store_cell(stack: FaultStack, person: Person, link: str, mode: Mode, media: tuple[str, ...] = ()) -> Row:
    """One connection, broken in one way."""

    async def broken(mark: str) -> None:
        await stack.links[link].be(mode)

    async def mend(mark: str) -> None:
        await stack.links[link].be("pass")

    def judge(answer: Answer, calls: int) -> str:
        return _judge(link, answer)

    return await cell(person, stack.model, NAMES[mode], link, broken, mend, judge, media)


def _judge(link: str, answer: Answer) -> str:
    if answer.seconds > LONGEST:
        return f"an answer within {LONGEST:.0f} s"
    if answer.status == 200:
        unknown = set(answer.body["degraded"]) - _PARTS.get(link, frozenset())
        return f"no mark {', '.join(sorted(unknown))}" if unknown else ""
    if answer.status == 503 and answer.body.get("code") in ("unavailable", "busy") and answer.retry_after:
        return ""
    if answer.status == 504 and answer.body.get("code") == "timed_out":
        return ""
    return "a reply, or 503 with Retry-After"
