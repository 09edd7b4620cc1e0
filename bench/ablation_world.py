"""A made-up world for tasks: things with figures, and tools that read them, of which some fail, stall or lie at seeded places.

Success is judged here, of what was saved at the end, and never by what the loop or the model says of itself.
"""

from __future__ import annotations

import json
import random
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from phronesis_contracts import NotFound, Risk, ServiceError, TimedOut, Unavailable
from phronesis_contracts.memory import Remember, Remembered, RememberedItem
from phronesis_contracts.outside import AcceptedTool
from phronesis_orchestrator.outside_tools.schemas import OfferedTool, OutsideArguments, OutsideResult, ToolOffers

SERVER = "field"
SOURCES = ("archive", "ledger", "registry", "survey", "wire")
"""The tools; each knows some subjects and not the others."""
KNOWING = 3
"""Tools that know one subject."""
HICCUP = 0.05
"""The share of single readings that fail though the tool is sound."""
SUBJECTS = (
    "bridge", "canal", "clinic", "depot", "ferry", "garage", "harbour", "kiln", "library", "market", "mill", "museum",
    "nursery", "orchard", "pump", "quarry", "reservoir", "school", "signal", "station", "theatre", "tower", "tunnel", "wharf",
)  # fmt: skip
_SCHEMA = {"type": "object", "properties": {"thing": {"type": "string"}}, "required": ["thing"]}
_AT = datetime(2026, 1, 1, tzinfo=UTC)


class Trouble(StrEnum):
    """What a tool does with a subject that it knows."""

    FAILS = "fails"
    STALLS = "stalls"
    """It never answers: whoever called sees its limit of time."""
    LIES = "lies"


@dataclass(frozen=True)
class Job:
    """One task: the figures of some things of one subject."""

    goal: str
    things: tuple[str, ...]


@dataclass
class World:
    """One world; the same seed makes the same one, whatever is read of it and in which order.

    Args:
        seed: of everything.
        troubled: the share of subjects of which one tool that knows them is in trouble.
        troubles: the kinds of it, in equal shares.
    """

    seed: int
    troubled: float = 0.75
    troubles: tuple[Trouble, ...] = tuple(Trouble)
    saved: list[str] = field(default_factory=list)
    """Texts that were saved, in their order."""

    def figure(self, thing: str) -> int:
        """The true figure of a thing."""
        return self._drawn("figure", thing).randint(100, 999)

    def knowing(self, subject: str) -> tuple[str, ...]:
        """The tools that know a subject."""
        return tuple(self._drawn("knowing", subject).sample(SOURCES, KNOWING))

    def trouble(self, source: str, subject: str) -> Trouble | None:
        """What is wrong with a tool where this subject is concerned."""
        drawn = self._drawn("trouble", subject)
        if drawn.random() >= self.troubled or not self.troubles:
            return None
        kind, at = drawn.choice(self.troubles), drawn.choice(sorted(self.knowing(subject)))
        return kind if at == source else None

    def jobs(self, rounds: int) -> list[Job]:
        """Each subject so many times, in an order of its own, always of other things and in other words."""
        drawn = self._drawn("jobs")
        jobs = []
        for at in range(rounds):
            subjects = list(SUBJECTS)
            drawn.shuffle(subjects)
            for subject in subjects:
                things = tuple(f"{subject}-{10 * at + nth + 100}" for nth in range(4))
                said = ("Report the figures of", "How many are there at", "Put together what is counted at")[at % 3]
                jobs.append(Job(f"{said} {', '.join(things)}", things))
        return jobs

    def offered(self) -> ToolOffers:
        """The tools, as their server's administrator accepted them: all of them read."""
        return ToolOffers(tools=tuple(OfferedTool(server=SERVER, tool=_tool(name)) for name in SOURCES))

    def read(self, asked: OutsideArguments) -> OutsideResult | ServiceError:
        """What a tool gives for a thing, or its failure."""
        source, thing = asked.tool.rpartition(".")[2], str(asked.given["thing"])
        subject = thing.partition("-")[0]
        if source not in self.knowing(subject):
            return NotFound(f"the {source} knows nothing of {thing}")
        trouble = self.trouble(source, subject)
        if trouble is Trouble.STALLS:
            return TimedOut("the outside server took too long")
        if trouble is Trouble.FAILS or self._drawn("hiccup", source, thing).random() < HICCUP:
            return Unavailable(f"the {source} is down")
        figure = self.figure(thing)
        return OutsideResult(text=json.dumps({"thing": thing, "figure": figure + 7 if trouble is Trouble.LIES else figure}))

    def save(self, request: Remember) -> Remembered:
        """Keep what a task saves."""
        self.saved.append(request.items[0].text)
        return Remembered(items=(RememberedItem(id="doc", external_id=request.items[0].external_id, status="created"),))

    def met(self, job: Job) -> bool:
        """Whether the text that was saved last holds the true figure of every thing of a job."""
        lines = set(self.saved[-1].splitlines()) if self.saved else set()
        return lines >= {f"{thing} = {self.figure(thing)}" for thing in job.things}

    def _drawn(self, *of: str) -> random.Random:
        return random.Random(f"{self.seed}/{'/'.join(of)}")


def _tool(name: str) -> AcceptedTool:
    told: dict[str, Any] = {"description": f"Reads the {name}.", "parameters": _SCHEMA, "pin": "-"}
    return AcceptedTool(name=name, risk=Risk.READ, idempotent=True, accepted_by="root", accepted_at=_AT, **told)
