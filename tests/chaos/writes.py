"""The writes of ours that turns and clients caused, counted in every store that holds one."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass

import asyncpg
from neo4j import AsyncGraphDatabase

from tests.support.production import GRAPH, GRAPH_DATABASE, graph_login

from .stack import ChaosStack
from .traffic import Note

_ITEMS = "SELECT external_id AS name, count(*) AS n FROM memory.items WHERE external_id = ANY($1) GROUP BY 1"
_AUDIT = """
SELECT item AS name, count(*) AS n FROM orchestrator.audit, jsonb_array_elements_text(arguments -> 'ids') AS item
WHERE action = 'remember' AND item = ANY($1) GROUP BY 1
"""
_NODES = "UNWIND $names AS name MATCH (n:MemoryUnit {key: name}) RETURN name, count(n) AS n"
_LINKS = (
    "UNWIND $names AS name MATCH (a:MemoryUnit {key: name})-[link:RELATED_TO]->(b:MemoryUnit) "
    "RETURN name, b.key AS target, count(link) AS n"
)
_PATIENCE = 60.0
"""Seconds that news may be on its way after the last kill."""
Count = Callable[[], Awaitable[Counter[str]]]


@dataclass(frozen=True)
class Writes:
    """One kind of write."""

    due: int
    missing: int = 0
    twice: int = 0

    def plus(self, other: Writes) -> Writes:
        """Both together."""
        return Writes(self.due + other.due, self.missing + other.missing, self.twice + other.twice)


async def held_writes(
    connection: asyncpg.Connection, stack: ChaosStack, completed: Sequence[str], notes: Sequence[Note]
) -> dict[str, Writes]:
    """Count every kind of write, once all that is due has arrived, or has had the time to."""
    stored = [note for note in notes if note.id]
    ids = {note.external_id: str(note.id) for note in stored}
    keys = [_key(id) for id in ids.values()]
    pairs = [f"{_key(str(note.id))}>{_key(ids[note.link])}" for note in stored if note.link]
    address = f"bolt://127.0.0.1:{stack.port(GRAPH)}"
    async with AsyncGraphDatabase.driver(address, auth=graph_login(stack.data)) as driver:

        async def rows(sql: str, names: Sequence[str]) -> Counter[str]:
            return Counter({row["name"]: row["n"] for row in await connection.fetch(sql, names)})

        async def nodes() -> Counter[str]:
            found = await driver.execute_query(_NODES, names=keys, database_=GRAPH_DATABASE)
            return Counter({row["name"]: row["n"] for row in found.records})

        async def links() -> Counter[str]:
            found = await driver.execute_query(_LINKS, names=keys, database_=GRAPH_DATABASE)
            return Counter({f"{row['name']}>{row['target']}": row["n"] for row in found.records})

        episodes = [f"turn:{turn}" for turn in completed]
        made = {
            "episodes of turns, in memory": await _counted(episodes, lambda: rows(_ITEMS, episodes)),
            "items of clients, in memory": await _counted(list(ids), lambda: rows(_ITEMS, list(ids))),
            "the same items, in the graph": await _counted(keys, nodes),
            "links between them, in the graph": await _counted(pairs, links),
            "their entries in the audit trail": await _counted(ids.values(), lambda: rows(_AUDIT, list(ids.values()))),
        }
    # A repeat of a write that took effect is answered with the first result, and the first result is `created`.
    again = sum(note.status != "created" for note in stored)
    return made | {"answers to clients about their items": Writes(len(stored), twice=again)}


def _key(id: str) -> str:
    return f"local/owner/{id}"


async def _counted(due: Iterable[str], count: Count) -> Writes:
    due = list(due)
    end = asyncio.get_running_loop().time() + _PATIENCE
    while True:
        found = await count()
        missing = sum(found[name] == 0 for name in due)
        if not missing or asyncio.get_running_loop().time() > end:
            # What is there and was not due counts as written twice: a link to what was not named, for example.
            return Writes(len(due), missing, sum(n > 1 for n in found.values()) + len(found.keys() - set(due)))
        await asyncio.sleep(0.2)
