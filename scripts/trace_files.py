"""The files of the orchestrator that one message enters: a turn of `dialogue` without a model key, on real servers.

python -m scripts.trace_files [TEXT]    exit status 1 where there are more than `LIMIT`

Runs NATS, Postgres and the orchestrator in this process; what is called before the turn is submitted, by the first turn
of a process alone, or by timers of the service's own (`TIMERS`), is left out, and so is what only runs while a module is
imported.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from types import CodeType
from typing import Any
from uuid import uuid4

from phronesis_bus import Bus, Call, Relay, ask, connect, serve, tell
from phronesis_contracts import NotFound, Nothing, Principal
from phronesis_contracts.documents import SEARCH_DOCUMENTS, FoundPassages, SearchDocuments
from phronesis_contracts.facts import ASK_FACTS, LEARN, AnsweredFacts, AskFacts, Learn, Learnt
from phronesis_contracts.instructions import AGENT_GET, AgentProfile, AgentRef
from phronesis_contracts.memory import PROFILE_GET, RETRIEVE, AugmentedMemoryContext, ContextItem, ItemKind, Profile, Retrieve
from phronesis_contracts.ontology import VOCABULARY, AskVocabulary, OntologyView, Vocabulary
from phronesis_contracts.orchestrator import TURN, TURN_GET, SubmitTurn, Turn, TurnRef, turn_id
from phronesis_instructions.library.content import read_agents
from phronesis_orchestrator.agents.cognition.state import Cognition
from phronesis_orchestrator.app import build, open_stores
from phronesis_orchestrator.models.reasoner import RULES
from phronesis_orchestrator.sessions.calendar import CalendarReaders
from phronesis_orchestrator.sessions.store import AesSeal
from phronesis_orchestrator.settings import OrchestratorSettings
from phronesis_postgres import Database, PostgresOutbox
from tests.support.servers import NatsServer, PostgresServer

from .tree import ROOT

LIMIT = 25
TIMERS = {"approvals-sweep", "learner"}
"""Names of tasks that look for work by themselves, whatever messages come."""
PACKAGE = ROOT / "services" / "orchestrator" / "phronesis_orchestrator"
FACT = ContextItem(id="i1", kind=ItemKind.FACT, title="Phoenix", text="Phoenix moves the archive.", score=0.9, hop=0)


@contextmanager
def entered_files() -> Iterator[set[Path]]:
    """The orchestrator's files whose functions are called inside the block."""
    found: set[Path] = set()

    def entered(frame: Any, event: str, arg: object) -> None:
        code: CodeType = frame.f_code
        path = Path(code.co_filename)
        if event == "call" and code.co_name != "<module>" and PACKAGE in path.parents and _task() not in TIMERS:
            found.add(path)

    threading.setprofile(entered)
    sys.setprofile(entered)
    try:
        yield found
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


def _task() -> str:
    try:
        task = asyncio.current_task()
    except RuntimeError:  # a thread without a loop
        return ""
    return task.get_name() if task else ""


@asynccontextmanager
async def neighbours(nats: NatsServer) -> AsyncIterator[None]:
    """Instructions, memory and graph that answer with fixed values: one memory, and no twin."""
    content = next(content for content in read_agents() if content.agent == "dialogue")
    published = {name: value for name, value in content.model_dump().items() if name in AgentProfile.model_fields}
    dialogue = AgentProfile.model_validate(published)

    async def agent(call: Call, request: AgentRef) -> AgentProfile:
        if request.agent != dialogue.agent:
            raise NotFound("no such agent")
        return dialogue

    async def person(call: Call, request: Nothing) -> Profile:
        return Profile()

    async def retrieve(call: Call, request: Retrieve) -> AugmentedMemoryContext:
        return AugmentedMemoryContext(user_id=call.who.user, key_phrases=request.key_phrases, memory_units=(FACT,))

    async def facts(call: Call, request: AskFacts) -> AnsweredFacts:
        return AnsweredFacts(known=False, understood=False)

    async def learn(call: Call, request: Learn) -> Learnt:
        return Learnt()

    async def documents(call: Call, request: SearchDocuments) -> FoundPassages:
        return FoundPassages()

    async def vocabulary(call: Call, request: AskVocabulary) -> Vocabulary:
        return Vocabulary(version="1", ontology=OntologyView(name="none", version="1", types=()))

    async with (
        connect("instructions", nats.settings("instructions")) as instructions,
        connect("memory", nats.settings("memory")) as memory,
        connect("graph", nats.settings("graph")) as graph,
    ):
        await serve(graph, VOCABULARY, vocabulary)
        await serve(memory, ASK_FACTS, facts)
        await serve(memory, LEARN, learn)
        await serve(memory, SEARCH_DOCUMENTS, documents)
        await serve(instructions, AGENT_GET, agent)
        await serve(memory, PROFILE_GET, person)
        await serve(memory, RETRIEVE, retrieve)
        yield


async def run_turn(bus: Bus, text: str) -> Turn:
    """Submit a message and wait for its end. Raises `TimeoutError`."""
    who, key = Principal(tenant="acme", user="ann"), uuid4().hex
    await tell(bus, who, TURN, SubmitTurn(idempotency_key=key, text=text, agent="dialogue"))
    reference = TurnRef(turn_id=turn_id(who.tenant, who.user, key))
    async with asyncio.timeout(60):
        while True:
            await asyncio.sleep(0.2)  # each call is watched, so that asking without a pause would starve the turn
            try:
                turn = await ask(bus, who, TURN_GET, reference)
            except NotFound:
                continue  # not accepted yet
            if turn.status.ended:
                return turn


async def trace(text: str) -> tuple[Turn, set[Path]]:
    """A turn, and the files that it entered."""
    with tempfile.TemporaryDirectory() as folder:
        nats, postgres = NatsServer(Path(folder) / "nats"), PostgresServer(Path(folder) / "postgres")
        await asyncio.gather(nats.start(), postgres.start())
        try:
            async with (
                postgres.fresh_schema("orchestrator") as settings,
                Database.open(settings, "orchestrator") as database,
                neighbours(nats),
                connect("orchestrator", nats.settings("orchestrator")) as bus,
                connect("gateway", nats.settings("gateway")) as front,
            ):
                stores, relay = open_stores(database), Relay(bus, PostgresOutbox(database))
                parts = AesSeal(None), CalendarReaders(1), Cognition()
                await build(bus, OrchestratorSettings(), stores, relay, RULES, {"postgres": database.ping}, *parts)
                await run_turn(front, text)  # the dictionary and the words of the tenant are read once
                with entered_files() as files:
                    return await run_turn(front, text), files
        finally:
            await asyncio.gather(nats.stop(), postgres.stop())


def main() -> int:
    """Print the files and their number."""
    text = sys.argv[1] if len(sys.argv) > 1 else "What is the Phoenix programme for?"
    turn, files = asyncio.run(trace(text))
    for path in sorted(files):
        print(path.relative_to(PACKAGE))
    print(f"{len(files)} files; the turn is {turn.status}: {turn.reply.user_response if turn.reply else turn.problem}")
    return int(len(files) > LIMIT or turn.reply is None)


if __name__ == "__main__":
    sys.exit(main())
