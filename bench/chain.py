"""The yardstick: a bare chain of nats-py and asyncpg with the hops, commits and payloads of a turn, and nothing else.

    python -m bench.chain front     HTTP in, job out, wait for the end, ask for the row, HTTP out
    python -m bench.chain worker    take the job, commit as often as a turn does, show progress, end
    python -m bench.chain owner     answer questions from a row; follow ended turns with a commit

No validation, no principals, no spans, no retries: what is left is what the transport and the disk cost. It is the fixed
yardstick: it keeps the hops and commits that a turn had when it was first measured, also where a turn has fewer by now.
"""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from collections.abc import Awaitable, Callable
from typing import Any
from uuid import uuid4

import asyncpg
import nats
import uvicorn
import uvloop
from nats.aio.client import Client
from nats.aio.msg import Msg

SCHEMA = """
CREATE TABLE IF NOT EXISTS conversations (id uuid PRIMARY KEY, n bigint, body jsonb);
CREATE TABLE IF NOT EXISTS turns (id uuid PRIMARY KEY, status text, fence bigint, body jsonb, reply jsonb);
CREATE TABLE IF NOT EXISTS journal (id uuid, step text, intent jsonb, result jsonb, PRIMARY KEY (id, step));
CREATE TABLE IF NOT EXISTS messages (id bigint GENERATED ALWAYS AS IDENTITY, turn uuid, text text);
CREATE TABLE IF NOT EXISTS outbox (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, body bytea);
CREATE TABLE IF NOT EXISTS items (id uuid PRIMARY KEY, body text);
"""
HEADERS = {"traceparent": "0" * 55, "correlation": "c" * 36, "principal": "p" * 420, "deadline": "1" * 14, "service": "gateway"}
CONTEXT = json.dumps({"items": [{"id": str(uuid4()), "title": "t" * 40, "text": "x" * 700} for _ in range(10)]}).encode()
"""About what hybrid retrieval hands back."""


async def front(client: Client, port: int) -> None:
    """HTTP on `port`."""
    waiting: dict[str, asyncio.Future[None]] = {}

    async def ended(msg: Msg) -> None:
        future = waiting.pop(msg.subject.rsplit(".", 1)[1], None)
        if future and msg.data.startswith(b"ended"):
            future.set_result(None)
        elif future:
            waiting[msg.subject.rsplit(".", 1)[1]] = future

    await client.subscribe("out.>", cb=ended)

    async def app(scope: dict[str, Any], receive: Callable[[], Awaitable[Any]], send: Callable[[Any], Awaitable[None]]) -> None:
        body = (await receive())["body"]
        id = str(uuid4())
        waiting[id] = future = asyncio.get_running_loop().create_future()
        job = client.request("job.turn", json.dumps({"id": id, "body": body.decode()}).encode(), timeout=5, headers=HEADERS)
        await asyncio.gather(job, future)
        reply = await client.request("rpc.get", id.encode(), timeout=5, headers=HEADERS)
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"application/json")]})
        await send({"type": "http.response.body", "body": reply.data})

    config = uvicorn.Config(app, host="127.0.0.1", port=port, log_level="warning", lifespan="off", access_log=False)
    await uvicorn.Server(config).serve()


async def worker(client: Client, pool: asyncpg.Pool) -> None:
    """Take jobs."""
    stream = client.jetstream()
    subscription = await stream.pull_subscribe_bind(durable="worker", stream="JOB")

    async def one(msg: Msg) -> None:
        job = json.loads(msg.data)
        id, asks = job["id"], "memory" in job["body"]
        out = f"out.acme.ann.{id}"
        async with pool.acquire() as db, db.transaction():
            await db.fetchrow("SELECT status FROM turns WHERE id = $1", id)
            await db.fetchval("SELECT count(*) FROM turns WHERE status = 'queued'")
            await db.execute("INSERT INTO conversations VALUES ($1, 1, $2)", id, job["body"])
            await db.execute("INSERT INTO turns VALUES ($1, 'queued', 0, $2)", id, job["body"])
        await client.publish(out, b"accepted" + b" " * 200, headers=HEADERS)
        await msg.ack()
        async with pool.acquire() as db:
            await db.fetch("UPDATE turns SET status = 'running', fence = fence + 1 WHERE id = $1 RETURNING *", id)
        await asyncio.gather(client.request("rpc.profile", b"{}", timeout=5, headers=HEADERS), recent(id))
        await client.publish(out, b"phase" + b" " * 200, headers=HEADERS)
        await step(id, "route")
        await client.publish(out, b"phase" + b" " * 200, headers=HEADERS)
        if asks:
            await client.request("rpc.retrieve", b"x" * 300, timeout=5, headers=HEADERS)
            await client.publish(out, b"phase" + b" " * 200, headers=HEADERS)
        await step(id, "compose")
        await client.publish(out, b"phase" + b" " * 200, headers=HEADERS)
        reply = json.dumps({"turn": id, "text": "y" * 600})
        async with pool.acquire() as db:
            await db.execute(
                "WITH t AS (UPDATE turns SET status = 'completed', reply = $2 WHERE id = $1 RETURNING id), "
                "c AS (UPDATE conversations SET n = n + 2 WHERE id = $1), "
                "m AS (INSERT INTO messages (turn, text) VALUES ($1, $3), ($1, $3)) "
                "INSERT INTO outbox (body) SELECT convert_to($3, 'UTF8') FROM t",
                id,
                reply,
                "z" * 600,
            )
        await client.publish(out, b"ended" + b" " * 200, headers=HEADERS)
        wake.set()

    async def recent(id: str) -> None:
        async with pool.acquire() as db:
            await db.fetch("SELECT * FROM messages WHERE turn = $1 LIMIT 20", id)

    async def step(id: str, name: str) -> None:
        async with pool.acquire() as db:
            await db.execute("INSERT INTO journal VALUES ($1, $2, '{}')", id, name)
            await db.execute("UPDATE journal SET result = $3 WHERE id = $1 AND step = $2", id, name, '"' + "r" * 400 + '"')

    async def relay() -> None:
        while True:
            await wake.wait()
            wake.clear()
            async with pool.acquire() as db:
                rows = await db.fetch("SELECT id, body FROM outbox ORDER BY id LIMIT 100")
            if rows:
                sends = (client.request("evt.ended", r["body"], timeout=5, headers=HEADERS) for r in rows)
                await asyncio.gather(*sends)
                async with pool.acquire() as db:
                    await db.execute("DELETE FROM outbox WHERE id = ANY($1)", [r["id"] for r in rows])

    wake = asyncio.Event()
    tasks = {asyncio.create_task(relay())}
    slots = asyncio.Semaphore(32)
    while True:
        await slots.acquire()
        try:
            (msg,) = await subscription.fetch(1, timeout=60)
        except nats.errors.TimeoutError:
            slots.release()
            continue
        task = asyncio.create_task(one(msg))
        tasks.add(task)
        task.add_done_callback(lambda t: (tasks.discard(t), slots.release()))


async def owner(client: Client, pool: asyncpg.Pool) -> None:
    """Answer, and follow."""

    def answering(answer: Callable[[Msg], Awaitable[bytes]]) -> Callable[[Msg], Awaitable[None]]:
        running = set()

        async def received(msg: Msg) -> None:
            async def reply() -> None:
                await client.publish(msg.reply, await answer(msg), headers=HEADERS)

            task = asyncio.create_task(reply())
            running.add(task)
            task.add_done_callback(running.discard)

        return received

    async def get(msg: Msg) -> bytes:
        async with pool.acquire() as db:
            row = await db.fetchrow("SELECT * FROM turns WHERE id = $1", msg.data.decode())
        return row["reply"].encode()

    async def profile(msg: Msg) -> bytes:
        async with pool.acquire() as db:
            await db.fetchrow("SELECT * FROM items LIMIT 1")
        return b"{}"

    async def retrieve(msg: Msg) -> bytes:
        async with pool.acquire() as db:
            await db.fetch("SELECT * FROM items LIMIT 10")
            await db.fetch("SELECT * FROM items LIMIT 10")
        await client.request("rpc.expand", b"i" * 400, timeout=5, headers=HEADERS)
        async with pool.acquire() as db:
            await db.fetch("SELECT * FROM items LIMIT 10")
        return CONTEXT

    async def expand(msg: Msg) -> bytes:
        return b"n" * 400

    for subject, answer in (("rpc.get", get), ("rpc.profile", profile), ("rpc.retrieve", retrieve), ("rpc.expand", expand)):
        await client.subscribe(subject, queue="owner", cb=answering(answer))
    subscription = await client.jetstream().pull_subscribe_bind(durable="owner", stream="EVT")
    while True:
        try:
            (msg,) = await subscription.fetch(1, timeout=60)
        except nats.errors.TimeoutError:
            continue
        async with pool.acquire() as db:
            await db.execute("INSERT INTO items VALUES (gen_random_uuid(), $1)", msg.data.decode())
        await msg.ack()


async def prepare(url: str, dsn: str) -> None:
    """Streams, consumers and tables."""
    client = await nats.connect(url)
    stream = client.jetstream()
    for name, retention in (("job", "workqueue"), ("evt", "limits"), ("out", "limits")):
        await stream.add_stream(name=name.upper(), subjects=[f"{name}.>"], retention=retention)
    for name, durable in (("JOB", "worker"), ("EVT", "owner")):
        await stream.add_consumer(name, durable_name=durable, ack_policy="explicit")
    await client.close()
    db = await asyncpg.connect(dsn)
    await db.execute(SCHEMA)
    await db.close()


async def main(role: str, url: str, dsn: str, port: int) -> None:
    """One process of the chain, until it is told to end."""
    client = await nats.connect(url)
    pool = await asyncpg.create_pool(dsn, min_size=2, max_size=10)
    work = {"front": lambda: front(client, port), "worker": lambda: worker(client, pool), "owner": lambda: owner(client, pool)}
    task = asyncio.create_task(work[role]())
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    try:
        await task
    except asyncio.CancelledError:
        pass
    await pool.close()
    await client.close()


if __name__ == "__main__":
    uvloop.run(main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])))
