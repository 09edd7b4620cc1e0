"""The agent that works on turns, and the service that owns what they write."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from phronesis_bus import Call, News
from phronesis_contracts import Message, Principal, Risk, Rpc, ServiceError
from phronesis_contracts.approvals import ApprovalStatus
from phronesis_contracts.instructions import AgentProfile
from phronesis_contracts.orchestrator import Directive, TurnEndedNews
from phronesis_orchestrator.agents.context import MediaText
from phronesis_orchestrator.agents.loops import LoopAnswer
from phronesis_orchestrator.approvals.policy import Ruling, Verdict, Waiting, missing_approval, request_approval
from phronesis_orchestrator.conversations.history import Past
from phronesis_orchestrator.models.reasoner import Answer, Reasoner, TurnContext
from phronesis_orchestrator.traces.record import TurnRecord
from phronesis_orchestrator.turns.execution import RecordingNeighbours, Steps, TurnRun, await_store
from phronesis_orchestrator.turns.run import TurnRunner
from phronesis_orchestrator.turns.turn import Claim, Completed, Failed
from phronesis_postgres import Connection, Database, write_once

from .options import APPROVAL
from .postgres import Transaction
from .statements import statement

if TYPE_CHECKING:
    from .world import World


class Keep(Message):
    text: str


class Kept(Message):
    id: int


KEEP = Rpc("memory.v1.simulation.keep", Keep, Kept)
_EFFECT = "INSERT INTO effects (tenant, key, text) VALUES ($1, $2, $3) RETURNING id"


@statement(_EFFECT)
def write_effect(at: Transaction, tenant: str, key: str, text: str) -> dict[str, Any]:
    id = at.server.next_id()
    at.insert("effects", (id,), {"id": id, "tenant": tenant, "key": key, "text": text})
    return {"id": id}


class Owner:
    """A service that keeps what turns write, each write once for its key, and follows what became of turns."""

    def __init__(self, database: Database, world: World) -> None:
        self._database, self._world = database, world

    async def keep(self, call: Call, request: Keep) -> Kept:
        async def write(connection: Connection) -> Kept:
            row = await connection.fetchrow(_EFFECT, call.who.tenant, call.key, request.text)
            assert row is not None
            return Kept(id=row["id"])

        return await write_once(self._database, call, request, Kept, write)

    async def on_turn_ended(self, news: News, event: TurnEndedNews) -> None:
        self._world.monitor.check_news(news.id, event)
        who = Principal(tenant=news.tenant, user=event.user)
        await self.keep(Call(who, "news", news.id), Keep(text="ended"))
        self._world.monitor.hear_end(event)


class Made(Message):
    text: str


AGENT = AgentProfile(agent="dialogue", version="1", loop="router", stages=(), prompts={})


def plan_steps(text: str) -> str:
    """The steps of a turn, a letter for each: a model call, a write, a call to an outside system, one that needs approval."""
    return text.partition(" ")[0]


class Agent:
    """The loop that works on turns: it does what the message says, by the steps that production's agents take."""

    def __init__(self, world: World) -> None:
        self._world = world

    async def run(self, running: TurnRun, reasoner: Reasoner, turn: TurnContext) -> LoopAnswer:
        await asyncio.sleep(self._world.think_seconds())
        for at, kind in enumerate(plan_steps(running.claim.request.text)):
            await self._take_step(running, kind, f"{kind}{at}")
        await asyncio.sleep(self._world.think_seconds())
        return LoopAnswer(f"answer to {running.claim.request.text}", Directive.FOCUSED_ANALYST, "because", None)

    async def _take_step(self, running: TurnRun, kind: str, name: str) -> None:
        world, claim = self._world, running.claim
        match kind:
            case "m":

                async def think() -> Answer[Made]:
                    world.monitor.begin_call(claim, name)
                    await asyncio.sleep(world.think_seconds())
                    return Answer(Made(text=name))

                await running.steps.made(name, Made, think)
            case "o":

                async def call() -> dict[str, Any]:
                    world.monitor.begin_call(claim, name, once=True)
                    await asyncio.sleep(world.think_seconds())
                    return {"answer": "done"}

                await running.steps.called(name, "outside", call, again=False, changes=True)
            case "w" | "a":

                async def write() -> dict[str, Any]:
                    problem = await self._refusal(running, name) if kind == "a" else None
                    world.monitor.begin_call(claim, name)
                    if problem is not None:
                        return {"problem": problem.body()}
                    return await self._write(running, name)

                await running.steps.called(name, "keep", write, changes=True)

    async def _write(self, running: TurnRun, name: str) -> dict[str, Any]:
        claim = running.claim
        try:
            kept = await running.neighbours.ask(claim.who, KEEP, Keep(text=name), key=f"{claim.turn_id}/{name}")
        except ServiceError as error:
            running.defer(error)  # as a task does: what may be there again in a moment is asked again, with the same key
            return {"problem": error.body()}
        return {"answer": kept.model_dump()}

    async def _refusal(self, running: TurnRun, name: str) -> ServiceError | None:
        verdict = Verdict(Ruling.ASK, "keep", "keep", Risk.MEDIUM, False)
        question = request_approval(running.claim.turn_id, name, verdict, Keep(text=name), seconds=APPROVAL)
        assert running.approvals is not None
        found = await await_store(running.approvals.answered(running.claim, question.approval_id))
        if found is None or found.status is ApprovalStatus.PENDING:
            raise Waiting(question)
        return None if found.status is ApprovalStatus.GRANTED else missing_approval(found)


class SimulatedRunner(TurnRunner):
    """The runner, without the stages that read what a turn is answered from: they write nothing."""

    async def _run_stages(self, claim: Claim, record: TurnRecord, tools: list[Any]) -> Completed | Failed:
        services, request = self._services, claim.request
        running = TurnRun(
            claim,
            Steps(services.journal, claim, services.tracing, services.ledger),
            services.tracing,
            RecordingNeighbours(services.neighbours, record),
            services.settings,
            services.show,
            [],
            tools=tools,
            approvals=services.approvals,
            record=record,
        )
        turn = TurnContext(None, {}, (), Directive.FOCUSED_ANALYST, request.text, request.text)
        return await self._run_loop(running, turn, Past(), MediaText("", (), 0))
