"""How much of the model's window is used."""

from __future__ import annotations

import pytest

from phronesis_contracts import NotFound, Principal
from phronesis_contracts.constitution.session import AskUsage, ContextUsage, SessionStats, StartSession, UsageRow
from phronesis_contracts.constitution.values import READERS
from phronesis_contracts.instructions import AgentProfile
from phronesis_orchestrator.sessions.handlers import WindowUsage, count_schema_tokens, usage_rows
from tests.support.personas import Persona
from tests.unit.orchestrator.fakes import PROFILE
from tests.unit.orchestrator.sessions.fakes import Stage, caller

LISTED = ("session.start.v1", "workload.assess.v1", "foundation.list.v2")
STATS = SessionStats(
    total_nodes=3, total_tokens=14_000, foundation_tokens=9_000, vision_tokens=3_000, workload_tokens=2_000, load_time=1.0
)


@pytest.mark.req("O-004", "O-120", "O-331", "O-332", "C-02", "C-03")
def test_the_rows_are_the_components_and_add_up_to_the_window() -> None:
    found = usage_rows(STATS, 12_000)
    assert found == (
        UsageRow(component="system prompt", budget=30_000, used=30_000, remaining=0, over_budget=False),
        UsageRow(component="tool schemas", budget=15_000, used=12_000, remaining=3_000, over_budget=False),
        UsageRow(component="foundation", budget=15_000, used=9_000, remaining=6_000, over_budget=False),
        UsageRow(component="vision", budget=8_000, used=3_000, remaining=5_000, over_budget=False),
        UsageRow(component="workload", budget=2_000, used=2_000, remaining=0, over_budget=False),
        UsageRow(component="conversation", budget=130_000, used=0, remaining=141_000, over_budget=False),
        UsageRow(component="total", budget=200_000, used=56_000, remaining=144_000, over_budget=False),
    )
    assert sum(row.budget for row in found[:-1]) == 200_000
    assert found[-1].used + found[-1].remaining == 200_000


@pytest.mark.req("O-120", "C-28")
def test_a_component_over_its_budget_is_marked_and_leaves_the_conversation_less() -> None:
    found = {row.component: row for row in usage_rows(STATS, 40_000)}
    assert (found["tool schemas"].over_budget, found["tool schemas"].remaining, found["conversation"].remaining) == (
        *(True, 0, 116_000),
    )


class Agents:
    """Agents by name, each with its allow-list."""

    def __init__(self, **lists: tuple[str, ...]) -> None:
        self.lists = lists

    async def __call__(self, who: Principal, name: str) -> AgentProfile:
        if name not in self.lists:
            raise NotFound("no such agent")
        return PROFILE.model_copy(update={"agent": name, "tools": self.lists[name]})


@pytest.mark.req("O-120", "O-331", "C-28")
async def test_the_components_are_those_of_the_session_of_that_id() -> None:
    stage, who = Stage(), caller()
    usage = WindowUsage(stage.sessions, Agents(discuss=LISTED))
    started = await stage.sessions.start(who, StartSession(session_id="mine"))
    await stage.sessions.start(who, StartSession(session_id="later"))
    for id in ("mine", None):
        found = await usage.usage(who, AskUsage(session_id=id))
        assert found == ContextUsage(rows=usage_rows(started.stats, count_schema_tokens(LISTED)), window=200_000)


async def test_a_session_of_another_user_is_not_told_and_one_that_is_not_known_is_measured() -> None:
    stage, ann = Stage(), caller()
    bob = caller(tenant=ann.who.tenant, user="bob")
    await stage.sessions.start(ann, StartSession(session_id="mine"))
    assert stage.sessions.of(bob.who, "mine") is None
    found = await WindowUsage(stage.sessions, Agents()).usage(bob, AskUsage(session_id="mine"))
    assert found.rows[2].used > 0
    assert stage.sessions.of(bob.who, "mine") is not None


@pytest.mark.req("O-331")
async def test_schemas_are_those_of_the_agent_s_list_that_its_role_may_call() -> None:
    stage, who = Stage(), caller(Persona.DISCUSS)
    of_its_list = await WindowUsage(stage.sessions, Agents(discuss=(*LISTED, "task.create.v1", "no.such.tool"))).usage(
        who, AskUsage()
    )
    assert of_its_list.rows[1].used == count_schema_tokens(LISTED) == sum(count_schema_tokens((name,)) for name in LISTED)


@pytest.mark.req("O-331", "O-332")
@pytest.mark.parametrize("role", [Persona.ADMIN, *sorted(map(Persona, READERS))])
async def test_without_a_list_they_are_those_of_the_role_within_the_reservation(role: Persona) -> None:
    stage, who = Stage(), caller(role)
    found = await WindowUsage(stage.sessions, Agents()).usage(who, AskUsage())
    assert 5_000 < found.rows[1].used <= 15_000
    assert found.rows[5].remaining >= 130_000


@pytest.mark.req("O-120")
@pytest.mark.parametrize("tokens", [None, 16_000])
async def test_the_window_of_the_installation_s_own_model_is_told_where_there_is_one(tokens: int | None) -> None:
    stage = Stage()
    found = await WindowUsage(stage.sessions, Agents(), tokens).usage(caller(), AskUsage())
    assert found.model_window == tokens
    assert ("modelWindow" in found.model_dump(by_alias=True)) is (tokens is not None)
