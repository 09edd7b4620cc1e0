"""The light model draws statements from ended turns, against a server that speaks Groq's HTTP."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime

from phronesis_contracts import BudgetExceeded, Principal
from phronesis_contracts.facts import LEARN, Learnt, Origin
from phronesis_orchestrator.learning.handlers import Learner
from phronesis_orchestrator.learning.statements import Drawer, EndedTurn, match_statements
from phronesis_orchestrator.ledger.usage import ChargedTurn, LedgerEntry
from tests.support.chat import AGENT, reasoning
from tests.support.groq_server import Fault, groq_server
from tests.unit.orchestrator.fakes import FakeNeighbours

OWN = AGENT.model_copy(update={"prompts": {**AGENT.prompts, "learn": "Draw, in JSON: {{history}}"}})
SAID = "I prefer short answers"


async def test_a_batch_of_turns_takes_one_call_and_its_texts_are_data() -> None:
    who = Principal(tenant="acme", user="ann")
    batch = [EndedTurn(f"t{n}", "c", who, f"{SAID} {n}", "Noted.", datetime.now(UTC), 1, "noor") for n in range(3)]
    one = {"turn": 2, "kind": "preference", "subject": "user", "predicate": "prefers", "object": "short answers"}
    told = {**one, "text": "The user prefers short answers.", "negated": False, "quote": f"{SAID} 1", "confidence": 0.9}
    async with groq_server() as server:
        server.fail("learn", Fault(content=json.dumps({"statements": [told]})))
        async with reasoning(server) as model:
            assert isinstance(model, Drawer)
            answer = await model.draw(OWN, batch)
        (call,) = server.calls
    assert answer.value is not None
    (drawn,) = match_statements(answer.value, batch)["t1"]
    assert (drawn.object, drawn.origin, call.purpose, call.model) == (
        "short answers",
        Origin.USER,
        "learn",
        "openai/gpt-oss-20b",
    )
    system, data = (call.request or {})["messages"]
    assert SAID not in system["content"]
    assert all(turn.said in data["content"] for turn in batch)


class Purse:
    """A ledger with one limit."""

    def __init__(self, tokens: int) -> None:
        self.left = tokens
        self.entered: list[tuple[str, str, str, str]] = []

    async def admit(self, turn: ChargedTurn) -> None:
        if self.left <= 0:
            raise BudgetExceeded("the limit is reached")

    async def spent(self, turn: ChargedTurn, spend: LedgerEntry) -> None:
        self.left -= spend.tokens
        self.entered.append((turn.turn_id, spend.asked.purpose, spend.asked.model, spend.outcome))

    def used(self, turn: ChargedTurn, spend: LedgerEntry) -> None:
        """Nothing of learning is journalled."""


class Queue:
    """Two ended turns, one at a time."""

    def __init__(self) -> None:
        who = Principal(tenant="acme", user="ann")
        self.left = [EndedTurn(f"t{n}", "c", who, SAID, "Noted.", datetime.now(UTC), 1, "noor") for n in range(2)]

    async def claim(self, most: int, after: float, lease: float) -> list[EndedTurn]:
        return self.left[:1]

    async def learnt(self, turns: Sequence[EndedTurn]) -> None:
        self.left = self.left[1:]


async def test_a_call_is_entered_in_the_ledger_and_none_is_made_once_a_limit_is_reached() -> None:
    queue, purse = Queue(), Purse(1)
    asked = FakeNeighbours(profiles={"dialogue": OWN}, owners={LEARN.subject: Learnt()})
    async with groq_server() as server, reasoning(server) as model:
        server.fail("learn", Fault(content=json.dumps({"statements": []})))
        learner = Learner(queue, asked, model, purse, lambda: True, batch=8, after=0)
        assert [await learner.once(), await learner.once()] == [True, True]
        assert [call.purpose for call in server.calls] == ["learn"]
    assert purse.entered == [("t0", "learn", "openai/gpt-oss-20b", "ok")]
    assert [request.statements is None for _, request, _ in asked.questions] == [False, True]
