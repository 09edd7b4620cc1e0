"""What a running stack still holds of a text: tables, nodes and links of the graph, vectors, objects, streams."""

from __future__ import annotations

import asyncio
import base64
import json

import asyncpg
import httpx
from nats.js.errors import NotFoundError
from neo4j import AsyncGraphDatabase

from phronesis_bus import MEDIA, Bus, connect
from phronesis_bus.connection import read_message
from phronesis_bus.declare import USER as DECLARE
from phronesis_bus.topology import BACKUPS
from phronesis_contracts.media import UPLOADS
from phronesis_local import postgres, weaviate
from phronesis_local.keys import password
from phronesis_local.loopback import LOOPBACK
from tests.support.bus import jetstream
from tests.support.postgres_text import rows_with
from tests.support.production import GRAPH, GRAPH_DATABASE, SERVERS, graph_login
from tests.support.stack import RunningStack

_STREAMS = {"EVT": "evt.{}.>", "OUT": "out.{}.>", "JOB": "job.{}.>", "PARKED": "parked.>"}
"""Where messages of a tenant are kept; those that are parked do not name it in their subject."""
_GRAPH = ("MATCH (n) RETURN properties(n) AS held", "MATCH ()-[link]->() RETURN properties(link) AS held")


async def remains(stack: RunningStack, text: str, tenant: str) -> dict[str, int]:
    """Where `text` is still found, and how often; and how many events of `tenant` nobody has acknowledged yet."""
    looks = (_tables, _graph, _vectors, _objects)
    of_tenant = (_events(stack, tenant), _messages(stack, text, tenant))
    parts = await asyncio.gather(*(look(stack, text) for look in looks), *of_tenant)
    return {place: count for part in parts for place, count in part.items() if count}


async def _tables(stack: RunningStack, text: str) -> dict[str, int]:
    connection = await asyncpg.connect(postgres.dsn(stack.data.postgres))
    try:
        return await rows_with(connection, text)
    finally:
        await connection.close()


async def _graph(stack: RunningStack, text: str) -> dict[str, int]:
    address = f"bolt://{LOOPBACK}:{stack.part(GRAPH).port}"
    async with AsyncGraphDatabase.driver(address, auth=graph_login(stack.data)) as driver:
        async with driver.session(database=GRAPH_DATABASE) as session:
            rows = [row for query in _GRAPH for row in await (await session.run(query)).data()]
    return {"graph": sum(text in json.dumps(row["held"], default=str) for row in rows)}


async def _vectors(stack: RunningStack, text: str) -> dict[str, int]:
    """What the vector server holds; where there is none, vectors stand in tables."""
    if weaviate.NAME not in SERVERS:
        return {}
    found, key = 0, password(stack.data, weaviate.NAME)
    url = f"http://{LOOPBACK}:{stack.part(weaviate.NAME).port}/v1"
    async with httpx.AsyncClient(headers={"Authorization": f"Bearer {key}"}, trust_env=False) as server:
        for one in (await server.get(f"{url}/schema")).json()["classes"]:
            for tenant in (await server.get(f"{url}/schema/{one['class']}/tenants")).json():
                of = {"class": one["class"], "tenant": tenant["name"], "limit": 10_000}
                listed = (await server.get(f"{url}/objects", params=of)).json().get("objects") or []
                found += sum(text in json.dumps(held) for held in listed)
    return {"vectors": found}


async def _objects(stack: RunningStack, text: str) -> dict[str, int]:
    found: dict[str, int] = {}
    for owner, buckets in (("media", (MEDIA, UPLOADS)), ("memory", (BACKUPS,))):
        async with connect(owner, stack.bus_settings(owner)) as bus:
            for bucket in buckets:
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
        try:
            content = (await store.get(name)).data or b""
        except NotFoundError:  # deleted since it was listed
            continue
        held += data in content or data in name.encode()
    return held


async def _events(stack: RunningStack, tenant: str) -> dict[str, int]:
    async with connect(DECLARE, stack.bus_settings(DECLARE)) as bus:
        state = (await jetstream(bus, "STREAM.INFO.EVT", subjects_filter=f"evt.{tenant}.>"))["state"]
    return {"events": sum((state.get("subjects") or {}).values())}


async def _messages(stack: RunningStack, text: str, tenant: str) -> dict[str, int]:
    found: dict[str, int] = {}
    async with connect(DECLARE, stack.bus_settings(DECLARE)) as bus:
        for stream, subject in _STREAMS.items():
            sequence = 0
            while (message := await read_message(bus, stream, subject.format(tenant), sequence)) is not None:
                sequence = int(message["seq"])
                held = text.encode() in base64.b64decode(message.get("data", ""))
                found[f"stream {stream}"] = found.get(f"stream {stream}", 0) + held
    return found
