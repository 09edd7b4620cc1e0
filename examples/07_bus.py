"""An outside system on the bus, with nats-py alone: it calls tools, hands a turn in, follows it, and reads its reply.

    phronesis keys create --for bus --tenant local --user example --agent noor --json > outside.json
    python examples/07_bus.py outside.json

Without a file it makes itself a key on the stack of this machine.
"""

import asyncio
import json
import subprocess
import sys
import time
from pathlib import Path
from uuid import UUID, uuid4, uuid5

import nats
from nats.aio.client import Client
from nats.errors import NoRespondersError, TimeoutError

TURNS = UUID("6d0a1c9e-53b7-5f0e-9b51-6b1f8e8d4a77")
CREATE = [sys.executable, "-m", "phronesis", "keys", "create", "--for", "bus", "--json"]
CREATE += ["--tenant", "local", "--user", "example", "--agent", "noor", "--days", "1"]


async def ask(broker: Client, key: dict, what: str, body: dict, seconds: float = 20, **headers: str) -> dict:
    """Ask on the subject of a tool; an error is an answer too."""
    headers |= {"Phronesis-Principal": key["token"], "Phronesis-Deadline": str(time.time() + seconds)}
    try:
        subject = f"rpc.{key['tenant']}.{what}"
        answer = await broker.request(subject, json.dumps(body).encode(), timeout=seconds, headers=headers)
    except NoRespondersError:
        raise SystemExit("nobody serves it at the moment; try again") from None
    found = json.loads(answer.data)
    if "Nats-Service-Error" in (answer.headers or {}):
        print(f"refused: {found['code']} ({found['status']}) {found.get('field', '')} {found['detail']}")
    return found


async def hand_in(broker: Client, key: dict, text: str) -> dict:
    """Hand a turn in and follow it to its end. Until it is accepted the same message may be sent again."""
    once = uuid4().hex
    turn = str(uuid5(TURNS, f"{key['tenant']}\0{key['user']}\0{once}"))
    body = json.dumps({"idempotency_key": once, "text": text}).encode()
    progress = await broker.subscribe(f"out.{key['tenant']}.orchestrator.v1.turn.{key['user']}.{turn}")
    subject = f"job.{key['tenant']}.orchestrator.v1.turn.{key['user']}"
    accepted = False
    while True:
        if not accepted:
            await broker.publish(subject, body, headers={"Phronesis-Principal": key["token"]})
        try:
            event = json.loads((await progress.next_msg(timeout=5)).data)
        except TimeoutError:
            # What was said is a hint. The turn itself is the truth, and nothing that was missed is lost.
            state = await ask(broker, key, "orchestrator.v1.turn.get", {"turn_id": turn})
            if state.get("status") in ("completed", "failed", "cancelled", "parked"):
                return state
            accepted = "turn_id" in state
            continue
        accepted = True
        print(event["kind"], event.get("phase") or "")
        if event["kind"] == "refused":
            raise SystemExit(event["problem"]["detail"])
        if event["kind"] == "ended":
            return await ask(broker, key, "orchestrator.v1.turn.get", {"turn_id": turn})


async def main() -> None:
    made = Path(sys.argv[1]).read_text() if sys.argv[1:] else subprocess.check_output(CREATE, text=True)
    key = json.loads(made)
    broker = await nats.connect(key["servers"], user=key["nats_user"], password=key["nats_password"], inbox_prefix=key["inbox"])
    fact = {"external_id": "example-key", "text": "The key of the archive hangs behind the green door."}
    await ask(broker, key, "memory.v1.remember", {"items": [fact]}, **{"Idempotency-Key": uuid4().hex})
    await ask(broker, key, "memory.v1.recall", {"query": "archive", "limit": "many"})
    for item in (await ask(broker, key, "memory.v1.recall", {"query": "Where is the key of the archive?"}))["items"]:
        print(f"{item['score']:.2f}  {item['text']}")
    ended = await hand_in(broker, key, "Where does the key of the archive hang?")
    print(ended["status"], (ended.get("reply") or ended.get("problem"))["user_response"])
    await broker.close()


asyncio.run(main())
