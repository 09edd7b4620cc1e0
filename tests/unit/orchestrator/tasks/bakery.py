"""A bakery's graph of goals and work behind fake neighbours, and tasks of the agents that look after it."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from types import SimpleNamespace
from typing import Any

from phronesis_contracts.constitution.lists import GET_NODE, ConstitutionNodeFound, GetConstitutionNode
from phronesis_contracts.constitution.registry import TYPES
from phronesis_contracts.constitution.search import SEMANTIC_SEARCH, SearchStats, SemanticFound
from phronesis_contracts.constitution.values import ConstitutionNode
from phronesis_contracts.constitution.writes import CREATE, NodeWritten
from phronesis_contracts.memory import Recalled
from phronesis_contracts.tasks import NoPlan, TableBlock, TaskReport
from tests.support.counsel import profile
from tests.support.counsel_graphs import owners
from tests.unit.orchestrator.fakes import FakeTurns

from .stage import TaskStage

TODAY = datetime.now(UTC).date()


def day(ahead: int) -> str:
    """A day from today on."""
    return (TODAY + timedelta(days=ahead)).isoformat()


LATE = (date(TODAY.year, 1, 1) - timedelta(days=1)).isoformat()
PEOPLE = ("Ines Alvarez", "Ines Okafor", "Karl Brandt")
NODES: tuple[dict[str, Any], ...] = (
    {"id": "h-alvarez", "type": "human", "title": "Ines Alvarez"},
    {"id": "h-okafor", "type": "human", "title": "Ines Okafor"},
    {"id": "h-brandt", "type": "human", "title": "Karl Brandt"},
    {"id": "pr-oven", "type": "project", "title": "Second stone oven", "owner": "Karl Brandt", "budget": 30_000},
    {"id": "pr-rye", "type": "project", "title": "Rye bread for hotels", "owner": "Ines Okafor", "budget": 4_500},
    {"id": "t-bricks", "type": "task", "title": "Order fire bricks", "dueDate": LATE, "effortHours": 2, "owner": "Karl Brandt"},
    {"id": "t-flue", "type": "task", "title": "Measure the flue", "dueDate": day(9), "effortHours": 5, "owner": "Ines Alvarez"},
    {
        "id": "t-crates",
        "type": "task",
        "title": "Buy mailing crates",
        "dueDate": LATE,
        "effortHours": 1.5,
        "owner": "Ines Okafor",
    },
    {
        "id": "t-labels",
        "type": "task",
        "title": "Design the labels",
        "status": "done",
        "effortHours": 6,
        "owner": "Ines Okafor",
    },
    {"id": "i-crust", "type": "insight", "title": "Steam makes the crust", "confidence": 0.9},
)
LINKS = (
    ("t-bricks", "PART_OF", "pr-oven"),
    ("t-flue", "PART_OF", "pr-oven"),
    ("t-crates", "PART_OF", "pr-rye"),
    ("t-labels", "PART_OF", "pr-rye"),
)


class Bakery:
    """The graph, which can be written to. `more` and `links`: nodes and relationships beside those that it has."""

    def __init__(self, *more: dict[str, Any], links: tuple[tuple[str, str, str], ...] = ()) -> None:
        self.written: list[ConstitutionNode] = []
        domain: Any = SimpleNamespace(nodes=[*NODES, *more], links=(*LINKS, *links))
        self.owners: dict[str, Any] = {
            **owners(domain),
            "memory.v1.recall": Recalled(items=()),
            SEMANTIC_SEARCH.subject: SemanticFound(results=(), stats=SearchStats()),
            GET_NODE.subject: self._read,
            **{tool.rpc.subject: self._creating(type) for type, tool in CREATE.items()},
        }

    def _creating(self, type: str) -> Any:
        def create(request: Any) -> NodeWritten:
            given = request.model_dump(mode="json", by_alias=True, exclude_none=True)
            more = {"type": type, "layer": TYPES[type].layer, "status": TYPES[type].statuses[0]}
            now = datetime.now(UTC)
            node = ConstitutionNode(
                **{"createdAt": now, "updatedAt": now, **given, "id": f"new-{len(self.written) + 1}", **more}
            )
            self.written.append(node)
            return NodeWritten(node=node)

        return create

    def _read(self, request: GetConstitutionNode) -> ConstitutionNodeFound:
        return ConstitutionNodeFound(node=next(node for node in self.written if node.id == request.id))

    def task(self, goal: str, agent: str = "execute") -> TaskStage:
        """A task without a model."""
        return TaskStage(None, goal, owners=self.owners, agent=profile(agent), approvals=FakeTurns())


async def report_on(goal: str) -> TaskReport:
    """What a task delivers that has to be verified by rules."""
    stage = Bakery().task(goal)
    await stage.run()
    assert stage.state.report is not None
    assert (stage.state.score, stage.state.verified is not None) == (1.0, True)
    return stage.state.report


async def refusal(goal: str, agent: str = "execute") -> str:
    """Why a goal is declined; it must be."""
    bakery = Bakery()
    try:
        await bakery.task(goal, agent).run()
    except NoPlan as declined:
        assert bakery.written == []
        return declined.detail
    raise AssertionError(f"it was not declined: {goal}")


def rows(report: TaskReport, at: int = 0) -> dict[Any, dict[str, Any]]:
    """The rows of a table by what stands in their first column."""
    table = [block for block in report.blocks if isinstance(block, TableBlock)][at]
    return {row[0]: dict(zip(table.columns, row, strict=True)) for row in table.rows}
