"""What all stores of a running stack hold, but for what every turn writes by itself, so that two moments can be compared."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from dataclasses import dataclass

import asyncpg
from neo4j import AsyncGraphDatabase

from phronesis_bus import connect
from phronesis_bus.declare import USER as DECLARE
from phronesis_local import postgres
from phronesis_local.loopback import LOOPBACK
from tests.support.bus import jetstream
from tests.support.production import GRAPH, GRAPH_DATABASE, graph_login
from tests.support.stack import RunningStack

_TABLES = """
SELECT table_schema, table_name FROM information_schema.tables
WHERE table_type = 'BASE TABLE' AND table_schema NOT IN ('pg_catalog', 'information_schema') AND table_name !~ '^_?yoyo'
"""
_OF_TURNS = {
    "orchestrator": (
        "approvals", "audit", "conversations", "directives", "journal", "ledger", "messages", "outbox", "ran_with", "traces",
        "turns", "writes",
    ),
    "memory": (
        "constitution_retrievals", "documents", "held_news", "outbox", "sources", "texts", "tool_outcomes", "words", "writes",
    ),
    "instructions": ("exposures", "outbox", "writes"),
    "gateway": ("keys", "outbox"),
}  # fmt: skip
"""Tables that each turn writes to, whatever its tools do: what was said, read, called and spent; and the index of words."""
_FORMED = ("episode", "passage")
"""Kinds of rows that count nowhere: episodes and passages of a conversation's documents are formed by every turn."""
_OUT = ("embedding", "vector", "score", "last_used_at", "used_at", "seen_at", "checked_at", "touched_at")
_GRAPH = (
    "MATCH (n) RETURN labels(n) AS kind, properties(n) AS held",
    "MATCH (a)-[l]->(b) RETURN type(l) AS kind, properties(l) AS held",
)


@dataclass(frozen=True)
class Snapshot:
    """Rows by table, nodes and links, each by a hash."""

    held: dict[str, Counter[str]]
    shown: dict[str, str]
    """By hash, the beginning of the row."""

    def changed(self, later: Snapshot) -> dict[str, list[str]]:
        """What is another in a later one: by place the rows that came (`+`) and went (`-`)."""
        found: dict[str, list[str]] = {}
        for place in sorted(self.held.keys() | later.held.keys()):
            before, after = self.held.get(place, Counter()), later.held.get(place, Counter())
            rows = [f"+ {later.shown[one]}" for one in after - before] + [f"- {self.shown[one]}" for one in before - after]
            if rows:
                found[place] = rows
        return found


async def snapshot(stack: RunningStack) -> Snapshot:
    """What there is now."""
    held: dict[str, Counter[str]] = {}
    shown: dict[str, str] = {}

    def note(place: str, row: str) -> None:
        digest = hashlib.sha256(row.encode()).hexdigest()
        held.setdefault(place, Counter())[digest] += 1
        shown[digest] = row[:300]

    connection = await asyncpg.connect(postgres.dsn(stack.data.postgres))
    try:
        for schema, table in await connection.fetch(_TABLES):
            place = f"{schema}.{table}"
            if table in _OF_TURNS.get(schema, ()):
                continue
            out = ", ".join(f"'{name}'" for name in _OUT)
            shown_as = f"(to_jsonb(t) - ARRAY[{out}])::text AS row, to_jsonb(t) ->> 'kind' AS kind"
            query = f'SELECT {shown_as} FROM "{schema}"."{table}" AS t'
            for row in await connection.fetch(query):
                if row["kind"] not in _FORMED:
                    note(place, row["row"])
    finally:
        await connection.close()
    address = f"bolt://{LOOPBACK}:{stack.part(GRAPH).port}"
    async with AsyncGraphDatabase.driver(address, auth=graph_login(stack.data)) as driver:
        async with driver.session(database=GRAPH_DATABASE) as session:
            for query in _GRAPH:
                for row in await (await session.run(query)).data():
                    note("graph", json.dumps([row["kind"], row["held"]], default=str, sort_keys=True))
    return Snapshot(held, shown)


_UNLEARNT = "SELECT count(*) FROM orchestrator.turns WHERE status = 'completed' AND NOT learnt AND NOT erased"


async def under_way(stack: RunningStack) -> dict[str, int]:
    """What is still to be acted upon, by where it waits: turns to learn from, news in outboxes, and news at the broker."""
    connection = await asyncpg.connect(postgres.dsn(stack.data.postgres))
    try:
        outboxes = [schema for schema, table in await connection.fetch(_TABLES) if table == "outbox"]
        counts = {
            "learning": _UNLEARNT,
            **{f"{schema}.outbox": f'SELECT count(*) FROM "{schema}".outbox' for schema in outboxes},
        }
        waiting = {place: int(await connection.fetchval(count)) for place, count in counts.items()}
    finally:
        await connection.close()
    async with connect(DECLARE, stack.bus_settings(DECLARE)) as bus:
        waiting["events"] = int((await jetstream(bus, "STREAM.INFO.EVT"))["state"]["messages"])
    return {place: count for place, count in waiting.items() if count}


async def journalled(stack: RunningStack, turn: str) -> list[tuple[str, bool]]:
    """The tool calls of a turn that reached their owners, by its journal, and whether they worked."""
    connection = await asyncpg.connect(postgres.dsn(stack.data.postgres))
    try:
        rows = await connection.fetch(
            "SELECT intent ->> 'call' AS tool, result FROM orchestrator.journal WHERE turn_id = $1 AND step LIKE 'call.%'"
            " AND result IS NOT NULL ORDER BY step",
            turn,
        )
    finally:
        await connection.close()
    return [(row["tool"], "answer" in json.loads(row["result"])) for row in rows]
