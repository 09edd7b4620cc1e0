"""Live text on the whole stack: a worker that is killed while its model writes costs the reader nothing but a restart."""

from __future__ import annotations

import asyncio
import json
from uuid import uuid4

import pytest

from tests.support.approving import Desk
from tests.support.groq_server import Fault

pytestmark = [pytest.mark.verify, pytest.mark.timeout(300)]
LONG = "The reply goes on and on, sentence after sentence. " * 30


def said(text: str) -> str:
    return json.dumps({"user_response": text, "next_agent_directive": "focused_analyst", "directive_reasoning": "-"})


async def test_a_worker_killed_while_the_reply_is_written_ends_in_the_committed_reply(desk: Desk) -> None:
    about = f"Kvitfjell {uuid4().hex}"
    desk.model.fail("final", Fault(content=said(LONG), pause=0.2, about=about))
    desk.model.fail("final", Fault(content=said("The second one."), about=about))
    turn = (await desk.person.submit(f"What is the {about}?")).json()["turn_id"]
    kinds: list[str] = []
    standing, committed, name = "", "", ""
    async with asyncio.timeout(200), desk.person.http.stream("GET", f"/api/v1/turns/{turn}/events", timeout=200) as events:
        async for line in events.aiter_lines():
            if line.startswith("event: "):
                name = line.removeprefix("event: ")
            elif line.startswith("data: ") and name in ("live", "restart", "text", "done"):
                data = json.loads(line.removeprefix("data: "))
                kinds.append(name)
                if name == "live":
                    if kinds.count("live") == 1:
                        desk.stack.process("orchestrator").kill()
                    standing = standing[: data["offset"]] + data["text"]
                elif name == "restart":
                    standing = ""
                elif name == "text":
                    committed += data["text"]
                else:
                    break
    ended = await desk.person.ended(turn)
    assert ended["reply"]["user_response"] == committed == "The second one."
    assert kinds.index("restart") > kinds.index("live")
    assert standing in ("", "The second one.")
    assert ended["attempts"] > 1
