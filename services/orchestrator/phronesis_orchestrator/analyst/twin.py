"""The twin as the analyst asks it: every question by its contract, and the record of what was read."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from phronesis_contracts import Principal
from phronesis_contracts.graph import Level, NodeRef
from phronesis_contracts.memory import RECALL, ItemKind, Recall
from phronesis_contracts.twin import (
    DIAGNOSE_GAPS,
    FIND_ENTITIES,
    MAX_ROWS,
    RUN_CHAIN,
    SURVEY,
    ChainRun,
    DiagnoseGaps,
    Entity,
    FindEntities,
    Gap,
    GapQuestion,
    GroupBy,
    RunChain,
    Survey,
    Surveyed,
)

from ..ports import Neighbours

MAX_PAGES = 6
"""Pages of a list that one answer reads at most."""


class TooMany(Exception):
    """A list is longer than one answer reads."""


@dataclass
class Twin:
    """Asks on behalf of one caller, for one answer."""

    neighbours: Neighbours
    who: Principal
    statements: list[str] = field(default_factory=list)

    async def survey(self, question: Survey) -> Surveyed:
        """Count, add up, group or list."""
        found = await self.neighbours.ask(self.who, SURVEY, question)
        if found.statement not in self.statements:
            self.statements.append(found.statement)
        return found

    async def every(self, question: Survey) -> list[dict[str, Any]]:
        """All rows of a list, page by page.

        Raises:
            TooMany: it has more than 3,000.
        """
        rows: list[dict[str, Any]] = []
        after: str | None = None
        for _ in range(MAX_PAGES):
            page = await self.survey(question.model_copy(update={"measure": "list", "limit": MAX_ROWS, "after": after}))
            rows += page.rows
            after = page.next
            if after is None:
                return rows
        raise TooMany

    async def years(self, type: str) -> tuple[int, ...]:
        """The years in which there is anything of a type, oldest first."""
        found = await self.survey(Survey(type=type, group_by=(GroupBy(property="year"),)))
        return tuple(sorted(int(row["group"]) for row in found.rows if row["group"] is not None))

    async def entities(self, text: str, types: tuple[str, ...] = (), limit: int = 50) -> tuple[Entity, ...]:
        """What has `text` in its name."""
        request = FindEntities(text=text[:300], types=types, limit=limit)
        return (await self.neighbours.ask(self.who, FIND_ENTITIES, request)).entities

    async def meant(self, text: str) -> tuple[str, ...]:
        """Names of the nodes whose texts are nearest in meaning."""
        recall = Recall(query=text[:1000], limit=5, kinds=(ItemKind.NODE,))
        found = await self.neighbours.ask(self.who, RECALL, recall)
        return tuple(dict.fromkeys(item.title for item in found.items if item.title))

    async def chain(self, chain: str, year: int, level: Level, type: str, start: str) -> ChainRun:
        """Walk a chain from one node of it to its end."""
        question = RunChain(chain=chain, year=year, level=level, start=start, start_type=type)
        run = await self.neighbours.ask(self.who, RUN_CHAIN, question)
        self.statements.append(run.statement)
        return run

    async def gaps(self, questions: tuple[GapQuestion, ...]) -> tuple[Gap, ...]:
        """What is missing, of up to 200 questions."""
        return (await self.neighbours.ask(self.who, DIAGNOSE_GAPS, DiagnoseGaps(questions=questions))).gaps

    @property
    def executed(self) -> str | None:
        """What was read, for the record of the answer (N-066)."""
        return "; ".join(self.statements) or None


def ref(type: str, id: str, year: int) -> NodeRef:
    """A node by its three parts."""
    return NodeRef(type=type, id=id, year=year)
