"""Ordinary work by a model that does what the user asked, with harmless documents, memories and tool results at hand."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from phronesis_contracts.catalog import TOOLS
from phronesis_contracts.tools import legal_name
from phronesis_local.parts import SERVICES
from tests.support.approving import Desk, environment
from tests.support.changes import journalled
from tests.support.counsel import profile
from tests.support.groq_answers import blocks
from tests.support.groq_http import Fault
from tests.support.groq_server import GroqServer
from tests.support.injected import described
from tests.support.injected_calls import done
from tests.support.logged_web import logged_web
from tests.support.mcp_outsiders import outsider
from tests.support.obedience import LEND, Pages, wishes
from tests.support.people import ENDS, town
from tests.support.production import SERVERS
from tests.support.stack import running

AGENT = "execute"
FILE = Path(__file__).parents[1] / "benign" / "tasks.yaml"
BESIDE = ("nothing", "document", "memory", "earlier document", "tool result", "picture of an earlier turn")
"""What a turn has at hand beside the message; a task that does not say has one by its place in the file."""
_NOTE = b"The blue lamp has to be back in the workshop by 18 December 2026.\nPlease bring it. The workshop closes at four.\n"
_MEMORY = "The workshop is in the yard behind the smithy, and it closes at four."
_READ = {"memory": (("recall", {"query": "workshop"}),), "tool result": (("node.get.v1", {"id": "$roof"}),)}
"""What is read first where that is what a turn has at hand."""
_MARK = re.compile(r"\[task (\d+)\]")

Given = dict[str, Any]


@dataclass(frozen=True)
class Task:
    """One thing that a user asks for.

    Attributes:
        number: its place in the file, from 1.
        calls: what the model calls, in order: tool, arguments, and those of a model that has seen the message alone.
        finds: calls that it reads with first.
    """

    number: int
    say: str
    before: str
    beside: str
    reads: bool
    finds: tuple[tuple[str, Given], ...]
    calls: tuple[tuple[str, Given, Given], ...]

    @property
    def held(self) -> bool:
        """Whether it was kept back while the policy was tuned."""
        return self.number % 2 == 0


@dataclass(frozen=True)
class Asked:
    """What came of a task.

    Attributes:
        approvals: the tools that a person was asked about, with why.
        before: the tools of the task that need a person for their risk alone.
        failed: calls that did not work.
    """

    task: Task
    status: str
    approvals: list[tuple[str, str]] = field(default_factory=list)
    before: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)

    @property
    def more(self) -> bool:
        """Whether more was asked than for risk alone."""
        return len(self.approvals) > len(self.before)


def read_tasks() -> tuple[dict[str, Given], list[Task]]:
    """The things that there are, by name, and the tasks."""
    held = yaml.safe_load(FILE.read_text(encoding="utf-8"))
    return held["things"], [_task(number, one) for number, one in enumerate(held["tasks"], 1)]


def _task(number: int, told: Given) -> Task:
    calls: list[tuple[str, Given, Given]] = []
    finds: list[tuple[str, Given]] = []
    step: Given | None = told
    while step is not None:
        finds += [(step[name]["call"], step[name]["give"]) for name in ("find", "also") if name in step]
        calls.append((step["call"], step["give"], step.get("wish", step["give"])))
        step = step.get("then")
    beside = told.get("with") or BESIDE[number // 2 % len(BESIDE)]
    finds = [*_READ.get(beside, ()), *finds]
    reads = "'reads': True" in repr(told)
    return Task(number, told["say"], told.get("before", ""), beside, reads, tuple(finds), tuple(calls))


def filled(given: Any, ids: Mapping[str, str]) -> Any:
    """Arguments with the ids of things in place of their names."""
    match given:
        case dict():
            return {name: filled(value, ids) for name, value in given.items()}
        case list():
            return [filled(value, ids) for value in given]
        case str() if given.startswith("$"):
            return ids[given[1:]]
    return given


class Assistant(GroqServer):
    """A model that does the task whose number stands behind the message, one round for each of its calls.

    A step that asks again, since an answer was lost on the way, is told the same again.
    """

    def __init__(self) -> None:
        super().__init__()
        self.tasks: dict[int, Task] = {}
        self.ids: dict[str, str] = {}
        self._steps: dict[str, list[str]] = {}

    def _next_fault(self, purpose: str, request: dict[str, Any], step: str | None) -> Fault:
        turn, _, made = (step or "").partition("/")
        if made.startswith("wish"):
            task = self._task("\n".join(str(message["content"]) for message in request["messages"]))
            return wishes([(name, wish) for name, _, wish in task.calls] if task else [])
        if purpose != "tools":
            return super()._next_fault(purpose, request, step)
        task = self._task(blocks(request).get("message", ""))
        rounds = [] if task is None else [*task.finds, *((name, given) for name, given, _ in task.calls)]
        steps = self._steps.setdefault(turn, [])
        if made not in steps:
            steps.append(made)
        at = steps.index(made)
        if at >= len(rounds):
            return Fault(content=json.dumps({"answer": "It is done."}))
        name, given = rounds[at]
        return Fault(calls=[(legal_name(name), filled(given, self.ids))])

    def _task(self, text: str) -> Task | None:
        found = _MARK.findall(text)
        return self.tasks.get(int(found[-1])) if found else None


class Office(Desk):
    """The stack, and somebody whose agent does ordinary work."""

    model: Assistant
    note: str
    picture: str

    async def worked(self, task: Task) -> Asked:
        """Do a task; whatever a person is asked is granted."""
        media = (self.note,) if task.beside == "document" else ()
        conversation = None
        if task.beside in ("earlier document", "picture of an earlier turn"):
            conversation = await self._earlier("What is in this?", (self.note,), None)
        if task.before:
            conversation = await self._earlier(task.before, (), conversation)
        answer = await self.person.submit(f"{task.say} [task {task.number}]", conversation, media, agent=AGENT)
        assert answer.status_code == 202, answer.text
        turn, approvals = answer.json()["turn_id"], []
        async with asyncio.timeout(150):
            while (state := await self.person.turn(turn))["status"] not in ENDS:
                if state["status"] == "waiting" and (found := await self.approval(state["approval_id"]))["status"] == "pending":
                    approvals.append((found["tool"], found["reason"]))
                    assert (await self.answer(found["approval_id"], "approve"))[0] == 200
                await asyncio.sleep(0.05)
        wanted, called = [name for name, _, _ in task.calls], await journalled(self.stack, turn)
        failed = [f"{name} failed" for name, good in called if name in wanted and not good]
        failed += [f"{name} was not called" for name in wanted if name not in dict(called)]
        return Asked(task, state["status"], approvals, [name for name in wanted if risky(name)], failed)

    async def _earlier(self, text: str, media: tuple[str, ...], conversation: str | None) -> str:
        answer = await self.person.submit(text, conversation, media, agent=AGENT)
        assert answer.status_code == 202, answer.text
        await self.person.ended(answer.json()["turn_id"], 120)
        return str(answer.json()["conversation_id"])


def risky(tool: str) -> bool:
    """Whether every call of a tool needs a person for its risk alone."""
    found = TOOLS.get(tool)
    return found is not None and (found.irreversible or found.risk.name == "HIGH")


@asynccontextmanager
async def office(folder: Path) -> AsyncIterator[Office]:
    """The office for the length of a block."""
    things, tasks = read_tasks()
    async with AsyncExitStack() as opened:
        model = Assistant()
        await model.start()
        opened.push_async_callback(model.stop)
        web = await opened.enter_async_context(logged_web())
        pages = Pages()
        server = await opened.enter_async_context(outsider(pages))
        pages.tools[LEND] = {**pages.tools[LEND], "description": "Lend a book."}
        told = {"MEDIA_TRUSTED_HOSTS": json.dumps([server.place]), "ORCHESTRATOR_TURN_LIMIT": "200"}
        stack = await opened.enter_async_context(
            running(folder, (*SERVERS, *SERVICES), environment(model) | told | web.environment)
        )
        people = await opened.enter_async_context(town(stack.data.url.read_text().strip(), stack.data.key.read_text().strip()))
        await people.ready()
        made = Office(stack, model, people, await people.someone(role="admin"))
        person = made.person
        for name, thing in things.items():
            model.ids[name] = f"{name}-1"
            await done(person, f"{thing['type']}.create.v1", id=f"{name}-1", title=thing["title"])
        await done(person, "remember", items=[{"title": "workshop", "text": _MEMORY}])
        await done(person, "mcp_servers.add", name="page", url=server.url)
        await described(person, pages, "Give a page.")
        made.note = await person.uploaded("note.txt", _NOTE, "text/plain")
        model.tasks = {task.number: task for task in tasks}
        called = [name for task in tasks for name in (*(c[0] for c in task.calls), *(f[0] for f in task.finds))]
        names = [*profile(AGENT).tools, "recall", "memory_query", "outside.page", *called]
        listed = "\n".join(f"- {name}" for name in dict.fromkeys(names) if not name.startswith("outside.page."))
        await done(person, "publish_instructions", texts=[{"tag": f"{AGENT}/allow_list", "content": listed}])
        yield made
