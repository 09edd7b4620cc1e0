"""A whole stack with a scripted model and an agent that may delete: what is asked, answered, and done."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from time import monotonic
from typing import Any
from uuid import uuid4

import asyncpg

from phronesis_local import postgres
from phronesis_local.parts import SERVICES
from tests.support.counsel import profile
from tests.support.groq_server import Fault, GroqServer, groq_server
from tests.support.people import Person, Town
from tests.support.production import SERVERS
from tests.support.stack import RunningStack, running

AGENT, APPROVALS = "execute", "/api/v1/approvals"


class Desk:
    """The stack, and somebody who talks to the agent.

    Args:
        stack: the running stack.
        model: its model.
        people: its users.
        person: an admin of a tenant whose agent may delete nodes.
    """

    def __init__(self, stack: RunningStack, model: GroqServer, people: Town, person: Person) -> None:
        self.stack, self.model, self.people, self.person = stack, model, people, person

    async def goal(self) -> str:
        """The id of a new goal."""
        id = f"goal-{uuid4().hex[:12]}"
        await self._good("goal.create.v1", {"id": id, "title": "File ten patents a year"})
        return id

    async def there(self, id: str) -> bool:
        """Whether a node is there."""
        answer = await self.person.tool("node.get.v1", {"id": id})
        assert answer.status_code in (200, 404), answer.text
        return answer.status_code == 200

    def deletes(self, id: str, answer: str) -> None:
        """Let the model delete a node and then answer, in the turns whose message names the node."""
        self.model.fail("tools", Fault(calls=[("node_delete_v1", {"id": id})], about=order(id)))
        self.model.fail("tools", Fault(content=json.dumps({"answer": answer}), about=order(id)))

    async def submitted(self, id: str) -> str:
        """A turn that is to delete a node."""
        answer = await self.person.submit(order(id), agent=AGENT)
        assert answer.status_code == 202, answer.text
        return str(answer.json()["turn_id"])

    async def waits(self, turn: str, within: float = 60.0) -> dict[str, Any]:
        """The approval that a turn comes to wait for."""
        end = monotonic() + within
        while (state := await self.person.turn(turn))["status"] != "waiting":
            assert state["status"] in ("queued", "running"), state
            assert monotonic() < end, f"a turn is still {state['status']}"
            await asyncio.sleep(0.05)
        return await self.approval(state["approval_id"])

    async def approval(self, id: str) -> dict[str, Any]:
        """An approval."""
        answer = await self.person.http.get(f"{APPROVALS}/{id}")
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found

    async def answer(self, id: str, decision: str, note: str = "", person: Person | None = None) -> tuple[int, dict[str, Any]]:
        """Answer an approval: status and body."""
        http = (person or self.person).http
        answer = await http.post(f"{APPROVALS}/{id}", json={"decision": decision, "note": note})
        return answer.status_code, answer.json()

    async def restart(self) -> None:
        """Let every process of the stack end and begin anew on the same data; its users reach it where it is now."""
        await asyncio.to_thread(self.stack.end)
        await self.people.close()
        await self.stack.start()
        self.people = await _people(self.stack)
        self.person = self.people.known(self.person)

    async def run_out(self, id: str) -> None:
        """Let the time of an approval be over."""
        connection = await asyncpg.connect(postgres.dsn(self.stack.data.postgres))
        try:
            await connection.execute("UPDATE orchestrator.approvals SET expires_at = now() WHERE id = $1", id)
        finally:
            await connection.close()

    async def _good(self, tool: str, given: dict[str, Any], person: Person | None = None) -> None:
        answer = await (person or self.person).tool(tool, given)
        assert answer.status_code == 200, answer.text

    async def prepared(self) -> None:
        """Let the agent have the tool."""
        editor = await self.people.someone(self.person.tenant, "editor")
        tools = "\n".join(f"- {name}" for name in (*profile(AGENT).tools, "node.delete.v1"))
        await self._good("publish_instructions", {"texts": [{"tag": f"{AGENT}/allow_list", "content": tools}]}, editor)


def order(id: str) -> str:
    """A message that names a node as nothing else does: a session begins with the ids of all goals."""
    return f"Please delete this goal: {id}."


@asynccontextmanager
async def desk(folder: Path) -> AsyncIterator[Desk]:
    """The desk for the length of a block."""
    async with AsyncExitStack() as opened:
        model = await opened.enter_async_context(groq_server())
        stack = await opened.enter_async_context(running(folder, (*SERVERS, *SERVICES), environment(model)))
        people = await _people(stack)
        made = Desk(stack, model, people, await people.someone(role="admin"))
        opened.push_async_callback(lambda: made.people.close())
        await made.prepared()
        yield made


def environment(model: GroqServer) -> dict[str, str]:
    """What a stack needs to talk to a scripted model."""
    return {"GROQ_API_KEY": "gsk-scripted", "ORCHESTRATOR_MODEL_URL": model.groq_url}


async def _people(stack: RunningStack) -> Town:
    """The users of a stack, once it is ready for them."""
    people = Town(stack.data.url.read_text().strip(), stack.data.key.read_text().strip())
    await people.ready()
    return people
