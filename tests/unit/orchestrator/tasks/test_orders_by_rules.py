"""Goals without a model over a graph of goals and work: what is read, what is written, and what waits for a person."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from phronesis_contracts import NotFound
from phronesis_contracts.constitution.lists import GET_NODE, ConstitutionNodeFound, GetConstitutionNode
from phronesis_contracts.constitution.registry import TYPES
from phronesis_contracts.constitution.search import SEMANTIC_SEARCH, SearchStats, SemanticFound
from phronesis_contracts.constitution.values import ConstitutionNode
from phronesis_contracts.constitution.writes import CREATE, UPDATE, NodeWritten
from phronesis_contracts.memory import Recalled
from phronesis_contracts.tasks import NoPlan, TableBlock
from phronesis_orchestrator.approvals.policy import Waiting
from tests.support.counsel import profile
from tests.support.counsel_graphs import DOMAINS, owners
from tests.unit.orchestrator.fakes import FakeTurns

from .stage import TaskStage

CLINIC = DOMAINS["clinic"]
AGENT = profile("execute")


class Graph:
    """The nodes of a domain, which can be written."""

    def __init__(self) -> None:
        told = owners(CLINIC)
        self.written: list[ConstitutionNode] = []
        self.lies = False
        """Whether it says that it wrote, and did not."""
        self.owners: dict[str, Any] = {
            **told,
            "memory.v1.recall": Recalled(items=()),
            SEMANTIC_SEARCH.subject: SemanticFound(results=(), stats=SearchStats()),
            GET_NODE.subject: self._read,
            **{tool.rpc.subject: self._creating(type) for type, tool in CREATE.items()},
            **{tool.rpc.subject: self._updating(type) for type, tool in UPDATE.items()},
        }

    def _creating(self, type: str) -> Any:
        def create(request: Any) -> NodeWritten:
            given = request.model_dump(mode="json", by_alias=True, exclude_none=True)
            return self._kept(type, {"id": f"new-{len(self.written) + 1}", **given})

        return create

    def _updating(self, type: str) -> Any:
        def update(request: Any) -> NodeWritten:
            given = request.model_dump(mode="json", by_alias=True, exclude_none=True)
            known = next(node for node in CLINIC.nodes if node["id"] == given["id"])
            return self._kept(type, {**known, **given})

        return update

    def _kept(self, type: str, given: dict[str, Any]) -> NodeWritten:
        now = datetime.now(UTC)
        more = {"type": type, "layer": TYPES[type].layer, "status": given.get("status") or TYPES[type].statuses[0]}
        node = ConstitutionNode(**{"createdAt": now, "updatedAt": now, **given, **more})
        if not self.lies:
            self.written.append(node)
        return NodeWritten(node=node)

    def _read(self, request: GetConstitutionNode) -> Any:
        found = [node for node in self.written if node.id == request.id]
        if not found:
            known = next((node for node in CLINIC.nodes if node["id"] == request.id), None)
            if known is None:
                raise NotFound("there is no such node", field="id")
            return ConstitutionNodeFound(node=ConstitutionNode(**{**known, "layer": "execution"}))
        return ConstitutionNodeFound(node=found[-1])


def clinic(goal: str, graph: Graph | None = None) -> tuple[TaskStage, Graph]:
    """A task of the agent that looks after work."""
    graph = graph or Graph()
    return TaskStage(None, goal, owners=graph.owners, agent=AGENT, approvals=FakeTurns()), graph


async def test_a_list_of_the_graph_is_a_table_of_what_fits() -> None:
    stage, _ = clinic("List the overdue tasks as a table")
    await stage.run()
    today = datetime.now(UTC).date().isoformat()
    overdue = {
        node["title"]
        for node in CLINIC.nodes
        if node["type"] == "task"
        and node.get("status", "todo") in ("todo", "in_progress")
        and str(node.get("dueDate", "9")) < today
    }
    assert stage.state.report is not None
    [table] = [block for block in stage.state.report.blocks if isinstance(block, TableBlock)]
    assert {row[0] for row in table.rows} == overdue
    assert stage.state.score == 1.0


async def test_an_order_becomes_a_call_with_what_its_words_state_and_is_read_back() -> None:
    stage, graph = clinic("Please add a task to order oil, due 14 December, with priority high, taking 3 hours")
    await stage.run()
    [made] = graph.written
    told = made.model_dump(mode="json", by_alias=True)
    assert (told["title"], told["priority"], told["effortHours"]) == ("Order oil", 4, 3.0)
    assert told["dueDate"].endswith("-12-14")
    assert stage.state.score == 1.0


async def test_a_goal_of_more_parts_than_a_plan_has_waves_is_declined_before_anything_is_written() -> None:
    stage, graph = clinic("; ".join(f"add a task to order oil {n}" for n in range(21)))
    with pytest.raises(NoPlan, match="cannot be worked off: it has more than 20 waves"):
        await stage.run()
    assert (graph.written, "plan" in stage.told) == ([], False)


async def test_a_change_that_is_lost_scores_at_most_0_3() -> None:
    graph = Graph()
    graph.lies = True
    task = next(node for node in CLINIC.nodes if node["type"] == "task" and node.get("status", "todo") == "todo")
    stage, _ = clinic(f'Set the due date of the task "{task["title"]}" to 4 March 2031', graph)
    await stage.run()
    assert stage.state.score is not None
    assert (stage.state.score <= 0.3, stage.state.verified) == (True, None)


async def test_what_was_not_written_though_its_tool_says_so_scores_at_most_0_3() -> None:
    graph = Graph()
    graph.lies = True
    stage, _ = clinic("Add a task to order oil", graph)
    await stage.run()
    assert stage.state.score is not None
    assert stage.state.score <= 0.3
    assert stage.state.report is not None
    assert "not found again" in stage.state.report.text


async def test_a_thing_is_changed_by_its_name() -> None:
    task = next(node for node in CLINIC.nodes if node["type"] == "task" and node.get("status", "todo") == "todo")
    stage, graph = clinic(f'Mark the task "{task["title"]}" as done')
    await stage.run()
    assert [(node.id, node.status) for node in graph.written] == [(task["id"], "done")]


@pytest.mark.parametrize(
    ("goal", "said"),
    [
        ('Mark the task "Paint the moon" as done', "nothing on record that is called"),
        ("Create a guardrail that nobody smokes", "has no tool for"),
        ("List the open tasks and then phone everybody", "This can be done: List the open tasks"),
        ("Delete every overdue task", "This can be done: List overdue task"),
    ],
)
async def test_an_order_that_cannot_be_carried_out_declines_the_goal_before_anything_is_written(goal: str, said: str) -> None:
    stage, graph = clinic(goal)
    with pytest.raises(NoPlan) as declined:
        await stage.run()
    assert said in declined.value.detail
    assert graph.written == []


async def test_what_is_named_after_things_of_a_set_waits_for_a_person() -> None:
    stage, graph = clinic("For every overdue task, create a task to set a new date")
    with pytest.raises(Waiting):
        await stage.run()
    assert graph.written == []
