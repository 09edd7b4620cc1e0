"""Hops of the bus: a request and its reply between two processes, and as much with many at once.

    python -m bench.hops                       this checkout beside bare nats-py
    python -m bench.hops --other CHECKOUT      the bus library of another checkout too, round by round in one run

Every process runs with this environment; only where the bus library is imported from differs. Read the ratios: the two
processes, the broker and whatever else runs share the machine.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

import nats
import uvloop
from nats.aio.msg import Msg

from phronesis_bus import Bus, Call, ask, connect, serve
from phronesis_contracts import Principal
from phronesis_contracts.memory import RECALL, Recall, Recalled
from phronesis_local.layout import inherited_environment
from tests.support.servers import NatsServer

ROUNDS = 3
HOPS = 700
"""Requests one after the other in each round; the first hundred are not counted."""
FLOOD = 4_000
AT_ONCE = 32
WHO = Principal(tenant="acme", user="ann")


async def measure(one: Any) -> dict[str, float]:
    """The median of a hop in microseconds, and requests in a second with `AT_ONCE` in flight."""
    times = []
    for _ in range(HOPS):
        began = time.perf_counter()
        await one()
        times.append(time.perf_counter() - began)
    left = FLOOD

    async def asking() -> None:
        nonlocal left
        while left > 0:
            left -= 1
            await one()

    began = time.perf_counter()
    await asyncio.gather(*(asking() for _ in range(AT_ONCE)))
    return {"p50": median(times[100:]) * 1e6, "rate": FLOOD / (time.perf_counter() - began)}


async def role(what: str, folder: Path, url: str) -> None:
    """One of the two processes, until its work is done or it is ended."""
    server = NatsServer(folder)
    server.url = url
    name = "memory" if what.endswith("serve") else "gateway"
    if what.startswith("bare"):
        password = server.settings(name).password()
        assert password is not None
        client = await nats.connect(url, user=name, password=password.get_secret_value(), inbox_prefix=f"_INBOX.{name}")
        await bare(client, what)
        await client.close()
        return
    async with connect(name, server.settings(name)) as bus:
        await framed(bus, what)


async def bare(client: Any, what: str) -> None:
    body, subject = b'{"query":"x"}' + b" " * 340, RECALL.on(WHO.tenant)

    async def answer(msg: Msg) -> None:
        await client.publish(msg.reply, b'{"items":[]}')

    if what == "bare-serve":
        await client.subscribe(subject, cb=answer)
        await client.flush()
        print("up", flush=True)
        await asyncio.Event().wait()
    print(json.dumps(await measure(lambda: client.request(subject, body, timeout=30))))


async def framed(bus: Bus, what: str) -> None:
    async def recall(call: Call, request: Recall) -> Recalled:
        return Recalled(items=())

    if what == "serve":
        await serve(bus, RECALL, recall)
        print("up", flush=True)
        await asyncio.Event().wait()
    question = Recall(query="x" * 300)
    print(json.dumps(await measure(lambda: ask(bus, WHO, RECALL, question, timeout=30))))


def run_round(checkout: Path, kind: str, folder: Path, url: str) -> dict[str, float]:
    """One server and one asker, with the libraries of `checkout`."""
    libs = os.pathsep.join([str(Path.cwd()), str(checkout / "libs" / "bus"), str(checkout / "libs" / "contracts")])
    environment = inherited_environment() | {"PYTHONPATH": libs}
    command = [sys.executable, "-m", "bench.hops", "--folder", str(folder), "--url", url, "--role"]
    with subprocess.Popen([*command, f"{kind}serve"], env=environment, stdout=subprocess.PIPE, text=True) as serving:
        assert serving.stdout is not None
        serving.stdout.readline()
        try:
            found: dict[str, float] = json.loads(subprocess.check_output([*command, f"{kind}ask"], env=environment, text=True))
        finally:
            serving.terminate()
    return found


async def main(other: Path | None) -> None:
    """All rounds, and a line for each subject under test."""
    subjects = {"bare nats-py": (Path.cwd(), "bare-"), "this": (Path.cwd(), "")}
    if other is not None:
        subjects["other"] = (other, "")
    found: dict[str, list[dict[str, float]]] = {name: [] for name in subjects}
    with tempfile.TemporaryDirectory() as folder:
        server = NatsServer(Path(folder))
        await server.start()
        try:
            for _ in range(ROUNDS):
                for name, (checkout, kind) in subjects.items():
                    found[name].append(await asyncio.to_thread(run_round, checkout, kind, Path(folder), server.url))
        finally:
            await server.kill()
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors, {ROUNDS} rounds in turn")
    for name, rounds in found.items():
        hop, rate = median(each["p50"] for each in rounds), median(each["rate"] for each in rounds)
        print(f"{name:14} hop p50 {hop:6.0f} µs   {rate:6.0f} requests/s with {AT_ONCE} in flight")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--other", type=Path)
    parser.add_argument("--role")
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--url")
    given = parser.parse_args()
    uvloop.run(role(given.role, given.folder, given.url) if given.role else main(given.other))
