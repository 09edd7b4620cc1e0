"""Traces, replays and limits: the orchestrator on a real broker and a real Postgres, with the scripted model."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import pytest

from phronesis_bus import Bus, Call, ask, connect, serve, tell
from phronesis_contracts import BudgetExceeded, Forbidden, NotFound, Principal
from phronesis_contracts.answers import TURN_REPLAY, TURN_TRACE, AnswerTrace, NotReplayable, Replayed, ReplayTurn, TraceOfTurn
from phronesis_contracts.instructions import AGENT_GET, RETRIEVE_INSTRUCTIONS, AgentProfile, AgentRef
from phronesis_contracts.ledger import LIMITS_SET, USAGE_GET, GetUsage, SetLimit
from phronesis_contracts.memory import (
    PROFILE_GET,
    RECALL_MEMORY,
    RETRIEVE,
    AugmentedMemoryContext,
    Profile,
    RecalledMemories,
    RecallMemory,
    Retrieve,
    Scope,
)
from phronesis_contracts.ontology import VOCABULARY, OntologyView, Vocabulary
from phronesis_contracts.orchestrator import (
    CONVERSATION_GET,
    TURN,
    TURN_GET,
    TURN_LIST,
    ConversationRef,
    ListTurns,
    SubmitTurn,
    Turn,
    TurnRef,
    turn_id,
)
from phronesis_contracts.twin import DIAGNOSE_GAPS, READ_CYPHER, CypherRows, Diagnosed
from phronesis_orchestrator.models.reasoner import RULES, Reasoner
from phronesis_postgres import Database
from tests.integration.test_orchestrator import orchestrator
from tests.support.analysts import ROWS, SNIPPET, loaded, profile
from tests.support.chat import AGENT, reasoning
from tests.support.groq_server import Fault, GroqServer, groq_server
from tests.support.personas import Persona
from tests.support.servers import NatsServer, PostgresServer
from tests.unit.orchestrator.fakes import FACT

RECALL = ("recall_memory", {"scope": "personal", "query_summary": "what matters"})
BUNDLE = ("retrieve_instructions", {"mode": "A"})
READ = ("read_neo4j_cypher", {"cypher_query": "MATCH (p:EntityProject) RETURN p.id AS id LIMIT 30"})
OTHER = ("read_neo4j_cypher", {"cypher_query": "MATCH (p:EntityProject) RETURN p.name AS name LIMIT 30"})

NO_WORDS = Vocabulary(version="1", ontology=OntologyView(name="x", version="1", types=()))


@dataclass
class Services:
    """The other services, which count what they are asked."""

    asked: Counter[str] = field(default_factory=Counter)
    memories: list[Any] = field(default_factory=list)
    """Of `dialogue`; `recall_memory` gives its snippet where there is one."""

    async def start(self, instructions: Bus, memory: Bus, graph: Bus) -> None:
        """Serve."""
        for bus, rpc, answer in (
            (instructions, AGENT_GET, self._agent),
            (instructions, RETRIEVE_INSTRUCTIONS, loaded),
            (memory, PROFILE_GET, lambda request: Profile()),
            (memory, RETRIEVE, self._retrieved),
            (memory, RECALL_MEMORY, self._recalled),
            (graph, READ_CYPHER, lambda request: CypherRows(rows=ROWS)),
            (graph, VOCABULARY, lambda request: NO_WORDS),
            (graph, DIAGNOSE_GAPS, lambda request: Diagnosed(gaps=(), asked=0)),
        ):
            await serve(bus, rpc, self._counted(rpc.subject, answer))  # type: ignore[arg-type]

    def _counted(self, subject: str, answer: Callable[[Any], Any]) -> Callable[[Call, Any], Awaitable[Any]]:
        async def handler(call: Call, request: Any) -> Any:
            self.asked[subject] += 1
            return answer(request)

        return handler

    def _agent(self, request: AgentRef) -> AgentProfile:
        if request.release not in (None, 0, 2):
            raise NotFound("there is no such release")
        found = AGENT if request.agent == "dialogue" else profile(request.agent)
        if request.release != 2:
            return found.model_copy(update={"release": "4.0.0"})
        # It is not shown its memory any more.
        blind = {**found.prompts, "final": found.prompts["final"].replace("{{memory}}", "")}
        return found.model_copy(update={"release": "4.0.0+2", "prompts": blind})

    def _retrieved(self, request: Retrieve) -> AugmentedMemoryContext:
        return AugmentedMemoryContext(user_id="ann", key_phrases=request.key_phrases, memory_units=tuple(self.memories))

    def _recalled(self, request: RecallMemory) -> RecalledMemories:
        return RecalledMemories(snippets=(SNIPPET,) if self.memories else (), scope=Scope.PERSONAL)


@dataclass
class Desk:
    """The front of the orchestrator, its model and its neighbours."""

    bus: Bus
    model: GroqServer
    services: Services

    async def ask(self, who: Principal, text: str, agent: str = "dialogue", conversation: str | None = None) -> Turn:
        """An ended turn."""
        key = uuid4().hex
        request = SubmitTurn(idempotency_key=key, text=text, agent=agent, conversation_id=conversation)
        await tell(self.bus, who, TURN, request)
        while True:
            try:
                turn = await ask(self.bus, who, TURN_GET, TurnRef(turn_id=turn_id(who.tenant, who.user, key)))
            except NotFound:
                continue  # not accepted yet; the test's own limit of time ends this
            if turn.status.ended:
                return turn

    async def trace(self, who: Principal, turn: Turn) -> AnswerTrace:
        return await ask(self.bus, who, TURN_TRACE, TraceOfTurn(turn_id=turn.turn_id))

    async def replay(self, who: Principal, turn: Turn, release: int | None = None) -> Replayed:
        return await ask(self.bus, who, TURN_REPLAY, ReplayTurn(turn_id=turn.turn_id, with_instructions=release))

    def script(self, *rounds: list[tuple[str, Any]]) -> None:
        """Let the model make these rounds of calls; then it answers of what it read."""
        for calls in rounds:
            self.model.fail("tools", Fault(calls=calls))


@asynccontextmanager
async def desks(nats: NatsServer, database: Database, reasoner: Reasoner, model: GroqServer) -> AsyncIterator[Desk]:
    async with AsyncExitStack() as stack:
        buses = [
            await stack.enter_async_context(connect(name, nats.settings(name))) for name in ("instructions", "memory", "graph")
        ]
        services = Services()
        await services.start(*buses)
        await stack.enter_async_context(orchestrator(nats, database, reasoner))  # type: ignore[arg-type]
        yield Desk(await stack.enter_async_context(connect("gateway", nats.settings("gateway"))), model, services)


@pytest.fixture
async def database(postgres: PostgresServer) -> AsyncIterator[Database]:
    async with postgres.fresh_schema("orchestrator") as settings, Database.open(settings, "orchestrator") as database:
        yield database


@pytest.fixture
async def desk(nats_server: NatsServer, database: Database) -> AsyncIterator[Desk]:
    async with groq_server() as model, reasoning(model, budget=12_000) as reasoner:
        async with desks(nats_server, database, reasoner, model) as desk:
            yield desk


def someone(role: Persona = Persona.NOOR, tenant: str | None = None) -> Principal:
    return Principal(tenant=tenant or f"t{uuid4().hex[:8]}", user=f"u{uuid4().hex[:8]}", **role.rights)


async def test_a_trace_holds_each_model_call_with_its_tokens_and_its_cost(desk: Desk) -> None:
    who = someone()
    turn = await desk.ask(who, "What is the archive?")
    trace = await desk.trace(who, turn)
    assert turn.reply is not None
    assert [(call.step, call.purpose) for call in trace.model_calls] == [("route", "router"), ("compose", "final")]
    assert [call.step for call in trace.model_calls] == [str(step).rpartition("/")[2] for step in desk.model.steps()]
    usage = turn.reply.usage
    assert (
        sum(call.input_tokens for call in trace.model_calls),
        sum(call.output_tokens for call in trace.model_calls),
        round(sum(call.cost_usd or 0 for call in trace.model_calls), 9),
    ) == (usage.input_tokens, usage.output_tokens, usage.cost_usd)
    assert usage.input_tokens > 0
    assert {call.model for call in trace.model_calls} == {call.model for call in desk.model.calls}


async def test_a_trace_tells_stages_tools_memories_and_instructions(desk: Desk) -> None:
    who = someone()
    desk.services.memories = [FACT]
    desk.script([RECALL], [BUNDLE], [READ])
    trace = await desk.trace(who, await desk.ask(who, "How many projects?", "noor"))
    assert (trace.release, trace.arms, trace.mode) == ("4.0.0", {"tone": "b"}, "A")
    assert [call.name for call in trace.tool_calls] == ["recall_memory", "retrieve_instructions", "read_neo4j_cypher"]
    assert [call.arguments for call in trace.tool_calls] == [RECALL[1] | {"limit": 5}, BUNDLE[1], READ[1] | {"parameters": {}}]
    assert [(one.id, one.score) for one in trace.memories] == [("personal:k-1", 0.8)]
    assert [stage.name for stage in trace.stages][:2] == ["I media", "classify"]
    assert all(stage.outcome == "ok" for stage in trace.stages)
    assert SNIPPET.content not in trace.model_dump_json()


async def test_no_text_of_a_memory_is_recorded(desk: Desk, database: Database) -> None:
    who = someone()
    desk.services.memories = [FACT]
    desk.script([RECALL], [BUNDLE], [READ])
    await desk.ask(who, "How many projects?", "noor")
    async with database.connection(who.tenant) as connection:
        kept = await connection.fetchval("SELECT string_agg(record, '') FROM traces")
    assert "k-1" in kept
    assert SNIPPET.content not in kept


async def test_a_trace_is_for_the_turns_user_and_for_admins_of_its_tenant(desk: Desk) -> None:
    who = someone()
    turn = await desk.ask(who, "hello")
    assert await desk.trace(someone(Persona.ADMIN, who.tenant), turn) == await desk.trace(who, turn)
    for stranger in (someone(tenant=who.tenant), someone(Persona.ADMIN)):
        with pytest.raises(NotFound):
            await desk.trace(stranger, turn)


async def test_a_replay_asks_no_service_and_is_the_same(desk: Desk) -> None:
    who = someone()
    desk.script([RECALL], [BUNDLE], [READ])
    turn = await desk.ask(who, "How many projects?", "noor")
    asked = desk.services.asked.copy()
    desk.script([RECALL], [BUNDLE], [READ])
    replayed = await desk.replay(who, turn)
    assert desk.services.asked == asked
    assert asked[READ_CYPHER.subject] == 1
    assert (replayed.same, replayed.diff, replayed.unrecorded, replayed.changed) == (True, "", (), ())
    assert replayed.before == replayed.after


async def test_a_replay_reads_memories_again_from_their_owner_and_nothing_else(desk: Desk) -> None:
    who = someone()
    desk.services.memories = [FACT]
    desk.script([RECALL], [BUNDLE], [READ])
    turn = await desk.ask(who, "How many projects?", "noor")
    asked = desk.services.asked.copy()
    desk.script([RECALL], [BUNDLE], [READ])
    replayed = await desk.replay(who, turn)
    assert desk.services.asked - asked == Counter({RECALL_MEMORY.subject: 1})
    assert (replayed.same, replayed.changed) == (True, ())


async def test_a_memory_that_is_gone_is_told(desk: Desk) -> None:
    who = someone()
    desk.services.memories = [FACT]
    turn = await desk.ask(who, "What is Phoenix?")
    assert turn.reply is not None
    assert FACT.text in turn.reply.user_response
    desk.services.memories = []
    replayed = await desk.replay(who, turn)
    assert (replayed.same, replayed.changed) == (False, ("i1",))
    assert FACT.text in replayed.diff


async def test_with_other_instructions_a_replay_shows_the_difference(desk: Desk) -> None:
    who = someone()
    desk.services.memories = [FACT]
    turn = await desk.ask(who, "What is Phoenix?")
    assert (await desk.replay(who, turn)).same
    replayed = await desk.replay(who, turn, 2)
    assert (replayed.same, replayed.before.release, replayed.after.release) == (False, "4.0.0", "4.0.0+2")
    assert replayed.diff.splitlines()[:2] == ["--- the turn", "+++ the replay"]
    with pytest.raises(NotFound):
        await desk.replay(who, turn, 7)


async def test_a_call_that_is_not_in_the_record_is_said_to_be_so_and_not_made(desk: Desk) -> None:
    who = someone()
    desk.script([RECALL], [BUNDLE], [READ])
    turn = await desk.ask(who, "How many projects?", "noor")
    asked = desk.services.asked.copy()
    desk.script([RECALL], [BUNDLE], [OTHER])
    replayed = await desk.replay(who, turn)
    assert desk.services.asked == asked
    assert [(call.name, call.outcome) for call in replayed.unrecorded] == [("read_neo4j_cypher", "not_recorded")]
    assert not replayed.same


async def test_a_replay_is_no_part_of_the_conversation_and_is_paid_for(desk: Desk) -> None:
    who = someone()
    turn = await desk.ask(who, "What is the archive?")
    ref = ConversationRef(conversation_id=turn.conversation_id)
    before = await ask(desk.bus, who, CONVERSATION_GET, ref)
    replayed = await desk.replay(who, turn)
    assert await ask(desk.bus, who, CONVERSATION_GET, ref) == before
    assert [one.turn_id for one in (await ask(desk.bus, who, TURN_LIST, ListTurns())).turns] == [turn.turn_id]
    (of_replay,) = (await ask(desk.bus, who, USAGE_GET, GetUsage(by=(), turn_id=replayed.turn_id))).sums
    assert (of_replay.calls, of_replay.input_tokens) == (2, replayed.after.input_tokens)


async def test_a_later_turn_is_not_shown_to_the_replay_of_an_earlier_one(desk: Desk) -> None:
    who = someone()
    first = await desk.ask(who, "What is the archive?")
    second = await desk.ask(who, "And the annex?", conversation=first.conversation_id)
    await desk.ask(who, "A zebra came later.", conversation=first.conversation_id)
    desk.model.reset()
    assert (await desk.replay(who, second)).same
    assert (desk.model.about("What is the archive?"), desk.model.about("zebra")) == (2, 0)


async def test_only_the_turns_user_may_replay_it_and_only_once_it_has_ended(desk: Desk, database: Database) -> None:
    who = someone()
    turn = await desk.ask(who, "hello")
    with pytest.raises(NotFound):
        await desk.replay(someone(Persona.ADMIN, who.tenant), turn)
    async with database.transaction(who.tenant) as connection:
        await connection.execute("UPDATE turns SET status = 'waiting' WHERE id = $1::text::uuid", turn.turn_id)
    with pytest.raises(NotReplayable):
        await desk.replay(who, turn)


async def test_the_rules_give_the_identical_answer_again(nats_server: NatsServer, database: Database) -> None:
    async with groq_server() as model, desks(nats_server, database, RULES, model) as desk:
        who = someone()
        desk.services.memories = [FACT]
        turn = await desk.ask(who, "What is Phoenix?")
        replayed = await desk.replay(who, turn)
        assert turn.reply is not None
        assert (replayed.same, replayed.answer, replayed.after.model_calls) == (True, turn.reply.user_response, 0)


async def test_a_limit_stops_the_next_call_and_none_is_made_after_it(desk: Desk) -> None:
    who = someone()
    admin = someone(Persona.ADMIN, who.tenant)
    await ask(desk.bus, admin, LIMITS_SET, SetLimit(window="day", tokens=1))
    turn = await desk.ask(who, "What is the archive?")
    assert [call.purpose for call in desk.model.calls] == ["router"]
    assert turn.problem is not None
    assert (turn.problem.code, turn.problem.status) == (BudgetExceeded.code, 402)
    again = await desk.ask(who, "And the annex?")
    assert again.problem is not None
    assert (again.problem.code, len(desk.model.calls)) == (BudgetExceeded.code, 1)
    await ask(desk.bus, admin, LIMITS_SET, SetLimit(window="day"))
    assert (await desk.ask(who, "And now?")).problem is None


async def test_a_limit_in_the_midst_of_work_leaves_the_turn_to_the_rules(desk: Desk) -> None:
    who = someone()
    await ask(desk.bus, someone(Persona.ADMIN, who.tenant), LIMITS_SET, SetLimit(window="day", tokens=10**9))
    desk.script([RECALL], [BUNDLE], [READ])
    used = (await desk.ask(who, "How many projects?", "noor")).reply
    assert used is not None
    spent = used.usage.input_tokens + used.usage.output_tokens
    desk.model.reset()
    await ask(desk.bus, someone(Persona.ADMIN, who.tenant), LIMITS_SET, SetLimit(window="day", tokens=2 * spent - 1000))
    desk.script([RECALL], [BUNDLE], [READ])
    turn = await desk.ask(who, "How many projects?", "noor")
    assert turn.reply is not None
    assert "model" in turn.reply.degraded
    assert turn.reply.reasoner == "extractive"
    assert turn.reply.analysis is not None


async def test_the_rules_go_on_working_at_a_limit(nats_server: NatsServer, database: Database) -> None:
    async with groq_server() as model, desks(nats_server, database, RULES, model) as desk:
        who = someone()
        await ask(desk.bus, someone(Persona.ADMIN, who.tenant), LIMITS_SET, SetLimit(window="month", tokens=0, usd=0.0))
        assert (await desk.ask(who, "hello")).problem is None


async def test_only_an_admin_sets_limits_and_sees_what_others_use(desk: Desk) -> None:
    who, admin = someone(), None
    await desk.ask(who, "What is the archive?")
    with pytest.raises(Forbidden):
        await ask(desk.bus, who, LIMITS_SET, SetLimit(window="day", tokens=1))
    admin = someone(Persona.ADMIN, who.tenant)
    sums = [(await ask(desk.bus, one, USAGE_GET, GetUsage(by=("user",), user=who.user))).sums for one in (admin, who)]
    assert [one.user for one in sums[0]] == [who.user]
    assert sums[0] == sums[1]
    other = someone(tenant=who.tenant)
    assert (await ask(desk.bus, other, USAGE_GET, GetUsage(user=who.user))).sums == ()


async def test_a_failed_call_is_paid_for(desk: Desk) -> None:
    who = someone()
    desk.model.fail("final", Fault(status=500, times=9))
    turn = await desk.ask(who, "What is the archive?")
    (failed,) = [call for call in (await desk.trace(who, turn)).model_calls if call.purpose == "final"]
    assert (failed.outcome, failed.attempts) == ("model_unavailable", 3)
