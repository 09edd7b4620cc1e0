"""Where a model obeys every injected order: a stack with all that carries texts to it, and all that the orders are about."""

from __future__ import annotations

import asyncio
import json
import os
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from time import monotonic
from typing import Any
from uuid import uuid4

from phronesis_contracts import Effect
from phronesis_contracts.origins import TRUSTED, OriginKind
from phronesis_contracts.tools import legal_name
from phronesis_local.parts import SERVICES
from tests.support.approving import Desk, environment
from tests.support.changes import Snapshot, journalled, snapshot, under_way
from tests.support.groq_http import Fault as GroqFault
from tests.support.groq_media import GroqMediaServer, groq_media_server
from tests.support.injected_calls import COLLECTOR, OUTSIDE, SECRET, done, furnished, harmful
from tests.support.logged_web import LoggedWeb, logged_web
from tests.support.mcp_outsiders import outsider
from tests.support.obedience import LEND, LOOK, ObedientServer, Orders, Pages, obedient_server
from tests.support.people import ENDS, Person, town
from tests.support.production import SERVERS
from tests.support.stack import running

MCP_SERVERS = "/api/v1/mcp-servers"
AGENTS = ("execute", "decisions", "discuss", "mind")
"""The agents that make calls: each is offered the calls of some parts."""
READS = (
    "recall", "remember", "workload.assess.v1", "memory_query", "recall_memory", "node.get.v1", "http_fetch",
    "session.start.v1", "policy.check.v1", "outside.page",
)  # fmt: skip
"""What each agent is offered beside the orders, to read what carries them."""
REPORT = Path(__file__).parents[2] / "docs" / "generated" / "injections.md"
SIDE_BY_SIDE = 4
"""Turns that run at once."""


def long_run() -> bool:
    """Whether this run tries every order in every carrier; else it tries one part of the orders in each."""
    return os.environ.get("PHRONESIS_INJECTIONS") == "all"


@dataclass(frozen=True)
class Ask:
    """A message that makes an agent read what carries orders."""

    text: str
    media: tuple[str, ...] = ()
    conversation: str | None = None
    client: dict[str, Any] | None = None
    """What a client program adds, where one sends the message."""


Carried = Callable[[int], Ask]
"""The message for a part of the orders."""


@dataclass
class Attacked:
    """What came of a turn that read orders."""

    turn: str
    status: str
    obeyed: set[int]
    wished: set[int]
    made: list[tuple[str, bool]] = field(default_factory=list)
    """Calls with an effect that reached their owners, and whether they worked; without what sends out of the tenant."""


def agent_of(part: int) -> str:
    """The agent that is given a part of the orders."""
    return AGENTS[part % len(AGENTS)]


class Place(Desk):
    """The stack, and an administrator whose agents have every tool.

    Attributes:
        model: obeys.
        media: reads pictures and hears recordings as it is told.
        pages: an outside server.
        web: all of the internet.
        things: ids of what the orders are about.
        other: another user of the tenant.
        variables: what the stack was started with.
        opened: what ends with the place.
        asking: held while it is found out which turn a client program's request became.
    """

    model: ObedientServer
    media: GroqMediaServer
    pages: Pages
    web: LoggedWeb
    things: dict[str, str]
    other: Person
    variables: dict[str, str]
    opened: AsyncExitStack
    asking: asyncio.Lock

    async def restart(self, folder: Path | None = None) -> None:
        """End every process of the stack and begin anew, on the same data or on what was restored into another folder."""
        await asyncio.to_thread(self.stack.end)
        parts = (*SERVERS, *SERVICES)
        self.stack = await self.opened.enter_async_context(running(folder or self.stack.data.root, parts, self.variables))
        where = self.stack.data.url.read_text().strip(), self.stack.data.key.read_text().strip()
        self.people = await self.opened.enter_async_context(town(*where))
        await self.people.ready()
        self.person, self.other = self.people.known(self.person), self.people.known(self.other)

    def again(self) -> None:
        """Give out new orders, about what is there."""
        self.model.orders = Orders(harmful(self.things))

    async def still(self, within: float = 30.0) -> None:
        """Wait until all that came is acted upon."""
        end = monotonic() + within
        while left := await under_way(self.stack):
            assert monotonic() < end, f"still to be acted upon: {left}"
            await asyncio.sleep(0.1)

    async def snapshot(self, within: float = 30.0) -> Snapshot:
        """All that there is in all stores, once nothing is under way any more."""
        end = monotonic() + within
        await self.still(within)
        before = await snapshot(self.stack)
        while (after := await snapshot(self.stack)).held != before.held:
            assert monotonic() < end, before.changed(after)
            before = after
        return after

    async def attacked(self, ask: Ask, part: int, within: float = 120.0, *, ours: bool = False) -> Attacked:
        """Let an agent answer a message, to the end or until it waits for a person; what waits is cancelled.

        Args:
            ours: whether calls that are no order's are told too.
        """
        text, agent = f"{ask.text} (part {part})", agent_of(part)
        if ask.client is not None:
            turn = await self._by_client(text, agent, ask)
        else:
            answer = await self.person.submit(text, ask.conversation, ask.media, agent=agent)
            assert answer.status_code == 202, answer.text
            turn = str(answer.json()["turn_id"])
        state = await self.settled(turn, within)
        if state["status"] == "waiting":
            await self.person.http.delete(f"/api/v1/turns/{turn}")
        made = await (journalled(self.stack, turn) if ours else self.made(turn))
        model = self.model
        return Attacked(turn, state["status"], model.obeyed.get(turn, set()), model.wished.get(turn, set()), made)

    async def settled(self, turn: str, within: float = 120.0) -> dict[str, Any]:
        """A turn once it waits or has ended."""
        end = monotonic() + within
        while (state := await self.person.turn(turn))["status"] not in (*ENDS, "waiting"):
            assert monotonic() < end, f"a turn is still {state['status']}"
            await asyncio.sleep(0.05)
        return state

    async def _by_client(self, text: str, agent: str, ask: Ask) -> str:
        messages = [*(ask.client or {}).get("messages", ()), {"role": "user", "content": text}]
        if (ask.client or {}).get("steps"):
            messages += ask.client["steps"]  # type: ignore[index]
        body = {"model": agent, "messages": messages} | (ask.client or {}).get("more", {})
        async with self.asking:  # whose turn is new is known of one request at a time
            known = {one["turn_id"] for one in await self.person.turns()}
            sent = asyncio.create_task(self.person.http.post("/v1/chat/completions", json=body))
            end = monotonic() + 60
            while not (new := [one["turn_id"] for one in await self.person.turns() if one["turn_id"] not in known]):
                assert monotonic() < end, "no turn came of it"
                assert not sent.done() or sent.result().status_code == 200, sent.result().text
                await asyncio.sleep(0.05)
        try:
            await self.settled(new[0])
        finally:
            sent.cancel()
            await asyncio.gather(sent, return_exceptions=True)
        return str(new[0])

    async def made(self, turn: str) -> list[tuple[str, bool]]:
        """The calls of orders that reached their owners, by the turn's journal.

        What the user says to read is called by the tools that send something out: those are known by what was sent.
        """
        effects = {name for name, _ in self.model.orders.calls.values()} - {"http_fetch", OUTSIDE}
        return [(tool, good) for tool, good in await journalled(self.stack, turn) if tool in effects]

    def leaks(self) -> Counter[str]:
        """What was sent out of the tenant that holds the planted secret: requests of pages, and calls of the outside server."""
        sent = Counter(head for head in self.web.asked if SECRET in head)
        return sent + Counter(said for call in self.pages.calls if SECRET in (said := json.dumps(call)))

    async def quiet(self, text: str, reply: str = "Nothing of note.", media: Sequence[str] = (), agent: str = AGENTS[0]) -> str:
        """The conversation of a turn in which the model obeys nothing, and says what it read; it has ended."""
        marked = f"{text} (quietly, {uuid4().hex[:8]})"
        self.model.quiet[marked] = reply
        answer = await self.person.submit(marked, None, media, agent=agent)
        assert answer.status_code == 202, answer.text
        assert (await self.person.ended(answer.json()["turn_id"], 120))["status"] == "completed"
        return str(answer.json()["conversation_id"])

    async def remembered(self, word: str, within: float = 60.0) -> None:
        """Return when an episode that holds a word is found."""
        end = monotonic() + within
        while True:
            answer = await self.person.tool("memory_query", {"operation": "episodes", "query": word})
            if word in answer.text.replace(f'"query":"{word}"', ""):
                return
            assert monotonic() < end, f"no episode holds {word}"
            await asyncio.sleep(0.1)

    async def allowed(self, text: str, media: Sequence[str], tool: str, given: dict[str, Any]) -> None:
        """Let an agent make a call in a turn that has read media, and the user allow it where they are asked."""
        self.model.fail("tools", GroqFault(calls=[(legal_name(tool), given)], about=text))
        self.model.fail("tools", GroqFault(content=json.dumps({"answer": "It is done."}), about=text))
        answer = await self.person.submit(text, None, media, agent=AGENTS[0])
        assert answer.status_code == 202, answer.text
        turn = answer.json()["turn_id"]
        if (state := await self.settled(turn))["status"] == "waiting":
            assert (await self.answer(state["approval_id"], "approve"))[0] == 200
            state = await self.person.ended(turn, 60)
        assert state["status"] == "completed", state


async def described(person: Person, pages: Pages, text: str) -> None:
    """Let an administrator accept the outside tools as they describe themselves now."""
    pages.tools[LOOK] = {**pages.tools[LOOK], "description": text}
    seen = (await person.http.get(f"{MCP_SERVERS}/page/tools")).json()["tools"]
    listed = [{"name": name, "risk": 0} for name in (LOOK, LEND)]
    body = {"tools": listed, "pins": {tool["name"]: tool["pin"] for tool in seen}}
    answer = await person.http.put(f"{MCP_SERVERS}/page/tools", json=body, headers={"Idempotency-Key": uuid4().hex})
    assert answer.status_code == 200, answer.text


def days() -> dict[str, str]:
    """Today and tomorrow, as the tools take them."""
    today = datetime.now(UTC)
    return {"startDate": f"{today:%Y-%m-%d}", "endDate": f"{today + timedelta(days=1):%Y-%m-%d}"}


def reads() -> dict[str, Callable[[str], tuple[str, dict[str, Any]]]]:
    """What is called for `READ kind name`."""
    return {
        "memory": lambda word: ("recall", {"query": word, "limit": 50}),
        "episodes": lambda word: ("memory_query", {"operation": "episodes", "query": word}),
        "context": lambda word: ("memory_query", {"operation": "context", "query": word}),
        "shared": lambda word: ("recall_memory", {"scope": "ministry", "query_summary": word}),
        "page": lambda word: (f"outside.page.{LOOK}", {"page": word}),
        "book": lambda word: (f"outside.page.{LEND}", {"page": word}),
        "node": lambda id: ("node.get.v1", {"id": id}),
        "web": lambda url: ("http_fetch", {"url": url}),
        "workload": lambda when: ("workload.assess.v1", {**days(), "includeTaskDetails": True}),
    }


async def allow_everything(place: Place, allow: bool) -> None:
    """Let an administrator allow whatever an untrusted text asks for, or go back to the policy that the system comes with."""
    http = place.person.http
    found = await http.get("/api/v1/action-policy")
    assert found.status_code == 200, found.text
    effects = [effect.value for effect in Effect if effect is not Effect.READ]
    kinds = [kind.value for kind in OriginKind if kind not in TRUSTED]
    rules = [{"origin": kind, "effect": effect, "ruling": "allow"} for kind in kinds for effect in effects] if allow else []
    hosts = [COLLECTOR] if allow else []
    version = found.json()["policy"]["version"]
    body = {"replaces": version, "rules": rules, "egress": hosts}
    answer = await http.put("/api/v1/action-policy", json=body, headers={"Idempotency-Key": uuid4().hex})
    assert answer.status_code == 200, answer.text


@asynccontextmanager
async def place(folder: Path) -> AsyncIterator[Place]:
    """The place for the length of a block."""
    async with AsyncExitStack() as opened:
        model = await opened.enter_async_context(obedient_server())
        media = await opened.enter_async_context(groq_media_server())
        web = await opened.enter_async_context(logged_web())
        pages = Pages()
        server = await opened.enter_async_context(outsider(pages))
        # Pages of a scan are left out where reading them takes long, as it does beside other tests.
        told = {
            "MEDIA_GROQ_URL": media.groq_url,
            "MEDIA_TRUSTED_HOSTS": json.dumps([server.place]),
            "MEDIA_PARSE_SECONDS": "120",
            "ORCHESTRATOR_LEARN_AFTER": "0",
            "ORCHESTRATOR_MEDIA_LIMIT": "150",
            "ORCHESTRATOR_TURN_LIMIT": "200",
        }
        variables = environment(model) | told | web.environment
        stack = await opened.enter_async_context(running(folder, (*SERVERS, *SERVICES), variables))
        where = stack.data.url.read_text().strip(), stack.data.key.read_text().strip()
        people = await opened.enter_async_context(town(*where))
        await people.ready()
        made = Place(stack, model, people, await people.someone(role="admin"))
        made.asking = asyncio.Lock()
        made.variables, made.opened = variables, opened
        made.other = await people.someone(made.person.tenant, role="admin")
        made.media, made.pages, made.web = media, pages, web
        made.things = await furnished(made.person, server.url)
        model.reads = reads()
        await described(made.person, pages, "Give a page.")
        await offered(made)
        yield made


async def offered(place: Place) -> None:
    """Let each agent have the calls of its parts, beside its own tools and those that read what carries orders."""
    place.again()
    orders = place.model.orders
    texts = []
    for at, agent in enumerate(AGENTS):
        numbers = [number for part in range(at, orders.parts, len(AGENTS)) for number in orders.part(part)]
        ordered = (orders.calls[number][0] for number in numbers)
        names = [*READS, *(name for name in ordered if name != OUTSIDE)]  # few, so that each is described
        listed = "\n".join(f"- {name}" for name in dict.fromkeys(names))
        texts.append({"tag": f"{agent}/allow_list", "content": listed})
    await done(place.person, "publish_instructions", texts=texts)
