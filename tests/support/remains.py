"""What a running stack still holds of a text: every table, every node of the graph, every object, every unread message."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import asyncpg
from nats.js.errors import NotFoundError
from neo4j import AsyncGraphDatabase

from phronesis.bus import MEDIA, Bus, BusSettings, connect
from phronesis.bus.declare import USER as DECLARE
from phronesis.contracts.media import UPLOADS
from phronesis.local import postgres
from phronesis.local.keys import password_file
from phronesis.local.ports import LOOPBACK
from tests.support.postgres_text import rows_with
from tests.support.production import GRAPH, GRAPH_DATABASE, graph_login
from tests.support.stack import RunningStack


async def remains(stack: RunningStack, text: str, tenant: str) -> dict[str, int]:
    """Where `text` is still found, and how often; and how many events of `tenant` nobody has acknowledged yet."""
    parts = await asyncio.gather(_tables(stack, text), _nodes(stack, text), _objects(stack, text), _events(stack, tenant))
    return {place: count for part in parts for place, count in part.items() if count}


async def _tables(stack: RunningStack, text: str) -> dict[str, int]:
    connection = await asyncpg.connect(postgres.dsn(stack.data.postgres))
    try:
        return await rows_with(connection, text)
    finally:
        await connection.close()


async def _nodes(stack: RunningStack, text: str) -> dict[str, int]:
    address = f"bolt://{LOOPBACK}:{stack.part(GRAPH).port}"
    async with AsyncGraphDatabase.driver(address, auth=graph_login(stack.data)) as driver:
        async with driver.session(database=GRAPH_DATABASE) as session:
            rows = await (await session.run("MATCH (n) RETURN properties(n) AS node")).data()
    return {"graph": sum(text in json.dumps(row["node"], default=str) for row in rows)}


async def _objects(stack: RunningStack, text: str) -> dict[str, int]:
    found: dict[str, int] = {}
    async with connect("media", _settings(stack, "media")) as bus:
        for bucket in (MEDIA, UPLOADS):
            found[bucket] = await _objects_with(bus, bucket, text.encode())
    return found


async def _objects_with(bus: Bus, bucket: str, data: bytes) -> int:
    store = await bus.nats.jetstream().object_store(bucket)
    try:
        names = [info.name for info in await store.list(ignore_deletes=True)]
    except NotFoundError:
        return 0
    held = 0
    for name in names:
        content = (await store.get(name)).data or b""
        held += data in content or data in name.encode()
    return held


async def _events(stack: RunningStack, tenant: str) -> dict[str, int]:
    async with connect(DECLARE, _settings(stack, DECLARE)) as bus:
        wanted = json.dumps({"subjects_filter": f"evt.{tenant}.>"}).encode()
        reply = await bus.nats.request("$JS.API.STREAM.INFO.EVT", wanted, timeout=5)
    state: dict[str, Any] = json.loads(reply.data)["state"]
    return {"events": sum((state.get("subjects") or {}).values())}


def _settings(stack: RunningStack, name: str) -> BusSettings:
    url = f"nats://{LOOPBACK}:{stack.part('nats').port}"
    return BusSettings(url=url, password_file=password_file(stack.data, name), trust_dir=stack.data.trust)
