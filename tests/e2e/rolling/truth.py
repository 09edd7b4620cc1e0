"""What the clients of a rolling restart were told, held against the stores and the broker's stream."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import httpx
from neo4j import AsyncGraphDatabase

from phronesis_bus import Bus, BusSettings, connect
from phronesis_bus.declare import USER as DECLARE
from tests.chaos.promise import Findings, findings
from tests.chaos.reading import Reading
from tests.chaos.truth import compared, progress_of, without
from tests.support.mixed import MixedStack
from tests.support.production import GRAPH, GRAPH_DATABASE, graph_login

from .clients import Told

FIELD = "expires_at"
"""The field of a turn that the version before this one does not know, and whose coming and going is counted."""
UNKNOWN = frozenset(
    {FIELD, "analysis", "instruction_tokens", "release", "arms", "approval_id", "trace"}
    | {"tool_calls", "waiting_for", "opening", "usage", "user", "feedback"}
)
"""What else of a turn and its reply came after that version, which leaves it out and says nothing where it was not told."""
_NODES = "MATCH (n:EntityProject) WHERE n.id IN $ids RETURN n.id AS id, n.version AS version"
_ONCE = {"nodes_created": 1, "nodes_updated": 0, "nodes_unchanged": 0}


@dataclass
class Held:
    """What the comparison came to."""

    found: Findings
    events: int = 0
    missing: int = 0
    repeated: int = 0
    unlike: int = 0
    nodes: int = 0
    wrong: list[str] = field(default_factory=list)
    """Everything else that is not as it should be, one line each."""
    with_field: int = 0
    """Turns whose end was told by a version that knows the new field."""
    without_field: int = 0

    @property
    def kept(self) -> bool:
        """Whether nothing was lost and nothing was doubled."""
        return self.found.kept and not (self.missing or self.repeated or self.unlike or self.wrong)


async def held(stack: MixedStack, told: Told, calls: dict[str, list[float]]) -> Held:
    """Hold everything that was sent against what there is now."""
    found = Held(await findings(stack, told.sent, told.notes, calls, UNKNOWN), wrong=list(told.unlike))
    found.wrong += [f"a turn was not accepted: {one.wish.text}" for one in told.sent if one.turn_id is None]
    settings = BusSettings(
        url=f"nats://127.0.0.1:{stack.port('nats')}", password_file=stack.data.secrets / f"{DECLARE}.password"
    )
    async with connect(DECLARE, settings) as bus, httpx.AsyncClient(base_url=stack.url, trust_env=False) as http:
        for id, read in told.read.items():
            await _read_well(bus, http, stack.key, id, read, found)
    await _nodes_once(stack, told.nodes, found)
    return found


async def _read_well(bus: Bus, http: httpx.AsyncClient, key: str, id: str, read: Reading, found: Held) -> None:
    answer = await http.get(f"/api/v1/turns/{id}", headers={"Authorization": f"Bearer {key}"})
    assert answer.is_success, answer.text
    row: dict[str, Any] = answer.json()
    assert read.done is not None
    if FIELD in read.done.data:
        found.with_field += 1
    else:
        found.without_field += 1
    said = replace(read, done=replace(read.done, data=without(read.done.data, UNKNOWN)))
    differences = compared(said, await progress_of(bus, id), without(row, UNKNOWN))
    found.events += differences.events
    found.missing += differences.missing
    found.repeated += differences.repeated
    found.unlike += differences.unlike
    found.wrong += [f"turn {id}: {fault}" for fault in read.wrong]


async def _nodes_once(stack: MixedStack, told: dict[str, dict[str, Any]], found: Held) -> None:
    """Each node is there, written once, and its writer was told so."""
    address = f"bolt://127.0.0.1:{stack.port(GRAPH)}"
    async with AsyncGraphDatabase.driver(address, auth=graph_login(stack.data)) as driver:
        asked = await driver.execute_query(_NODES, ids=list(told), database_=GRAPH_DATABASE)
    there = sorted((row["id"], row["version"]) for row in asked.records)
    found.nodes = len(told)
    if there != sorted((id, 1) for id in told):
        found.wrong.append("nodes of the graph are missing, doubled or written again")
    for id, answer in told.items():
        if {name: answer[name] for name in _ONCE} != _ONCE:
            found.wrong.append(f"the answer about node {id} is {answer}")
