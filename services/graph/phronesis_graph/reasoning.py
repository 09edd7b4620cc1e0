"""What the graph service does with questions that need no query language: surveys, chains, gaps and names."""

from __future__ import annotations

from phronesis_bus import Call
from phronesis_contracts import BadRequest
from phronesis_contracts.twin import (
    ChainPath,
    ChainRun,
    Diagnosed,
    DiagnoseGaps,
    Entities,
    FindEntities,
    RunChain,
    Survey,
    Surveyed,
)

from .chains import Walks, chosen
from .checks import nearest
from .diagnosis import Diagnosis
from .entities import best
from .ontology import Ontology
from .ports import ReasoningStore


class Reasoning:
    """One method for each message. Everything is asked for in the caller's tenant."""

    def __init__(self, ontology: Ontology, walks: Walks, store: ReasoningStore) -> None:
        self._ontology = ontology
        self._walks = walks
        self._store = store

    async def survey(self, call: Call, request: Survey) -> Surveyed:
        """Count, add up, group or list nodes of one type.

        Raises:
            BadRequest: it names what the ontology has not; `field` is the path to the name.
            TooLarge: what is to be shown does not fit into one answer.
        """
        return await self._store.survey(call.who.tenant, request)

    async def run_chain(self, call: Call, request: RunChain) -> ChainRun:
        """Walk a chain within one year and level; where nothing reaches its end, the walks that stop on the way.

        Raises:
            BadRequest: there is no such chain, or no such node type to begin at.
        """
        walk = chosen(self._walks, request.chain, request.start_type, "chain", "start_type")
        found = await self._store.paths(call.who.tenant, walk, request)
        return found.model_copy(update={"paths": tuple(sorted(found.paths, key=_longest_first))})

    async def diagnose_gaps(self, call: Call, request: DiagnoseGaps) -> Diagnosed:
        """Which of the questions have a gap, and which one.

        Raises:
            BadRequest: a question names what the ontology has not; `field` is the path to the name.
        """
        return await Diagnosis(self._ontology, self._walks, self._store, call.who.tenant).of(request.questions)

    async def find_entities(self, call: Call, request: FindEntities) -> Entities:
        """Nodes by name, those of several years as one.

        Raises:
            BadRequest: a node type that there is not.
        """
        for i, type in enumerate(request.types):
            if type not in self._ontology.nodes:
                raise BadRequest(f"no such node type{nearest(type, self._ontology.nodes)}", field=f"types.{i}")
        found = await self._store.named(call.who.tenant, request.types, request.text, request.year)
        return Entities(entities=best(request.text, found, request.limit))


def _longest_first(path: ChainPath) -> tuple[int, list[str]]:
    return -len(path.nodes), [node.id for node in path.nodes]
