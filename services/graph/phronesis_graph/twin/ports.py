"""What the handlers need of a store, and what reading statements need of a guard."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from phronesis_bus import Call
from phronesis_contracts import Principal, ServiceError
from phronesis_contracts.ontology import AskVocabulary
from phronesis_contracts.orchestrator import Audited
from phronesis_contracts.twin import ChainRun, Level, Links, LinksOf, Node, RunChain, Survey, Surveyed, Upserted

from ..guard import Allowed
from .chains import Walk
from .entities import NamedNode
from .gaps import ChainReach, FoundTie, GapCase, NodeId, Tie, TieQuestion
from .ontology import Ontology
from .upserts import Plan
from .vocabulary import NamePage, NodeSummary

MOST_ROWS = 500
"""Rows of a statement in one answer."""
AuditRefusal = Callable[[Principal, str, dict[str, object], ServiceError], Awaitable[None]]
"""Enters a refusal in the audit trail: who was refused, which tool, with which arguments, and why."""


class TwinStore(Protocol):
    """The typed nodes of every tenant, each tenant's apart from the others'."""

    async def upsert(self, call: Call, arguments: str, batch: Plan, audit: Audited) -> Upserted:
        """Write a batch, its news and its audit entry in one transaction, once for each key of the caller's service.

        Args:
            call: how the request came; its key makes a repeat answer with the first result.
            arguments: hash of the request as it came.

        Raises:
            BadRequest: an end that does not exist, or levels that may not be joined; nothing is written.
            KeyReused: the key came before with other arguments.
            Unavailable: the store is down, or the outcome of the commit is not known.
        """

    async def nodes(self, tenant: str, refs: tuple[str, ...]) -> list[Node]:
        """The nodes of `tenant` among `refs` (`type/id/year`) that exist, in the order asked. Raises `Unavailable`."""


class ReasoningStore(Protocol):
    """Questions over one tenant's twin that are asked as they are, never put together by a caller.

    Each is one read, of one or two statements where nothing else is said. All raise `Unavailable` when the store is
    down, `TimedOut` when it does not answer in time, and `TooLarge` when an answer would have more rows than are read.
    """

    async def survey(self, tenant: str, question: Survey) -> Surveyed:
        """The rows of a survey and how many nodes it is about. Raises `BadRequest`: it names what the ontology has not."""

    async def paths(self, tenant: str, walk: Walk, question: RunChain) -> ChainRun:
        """Walks to the chain's end or, where there is none, those that stop on the way; in no order."""

    async def links(self, tenant: str, question: LinksOf) -> Links:
        """The relationships of some nodes inside their year; one statement for a node type. The names are the ontology's."""

    async def named(self, tenant: str, types: Sequence[str], text: str, year: int | None) -> list[NamedNode]:
        """Nodes whose name holds the text or all its words, or stands in it; of every type where none is stated."""

    async def standing(self, tenant: str, things: Iterable[NodeId]) -> Mapping[NodeId, Mapping[int, Level]]:
        """The years in which each thing is there, and its level in each; one statement for a node type."""

    async def reached(self, tenant: str, cases: Mapping[Walk, Sequence[GapCase]]) -> Mapping[str, ChainReach]:
        """By question, how far its walk comes in its year and on its level; one statement for a walk.

        A question whose node is not there, or not on that level, has no entry.
        """

    async def ties(self, tenant: str, asked: Mapping[Tie, Sequence[TieQuestion]]) -> Sequence[FoundTie]:
        """The relationships asked for that there are, in every year and on every level; one statement for a node type."""


class VocabularyStore(Protocol):
    """The names and values of one tenant's nodes. Both raise `Unavailable` and `TimedOut`."""

    async def summary(self, tenant: str, ontology: Ontology) -> NodeSummary:
        """The years in which there are nodes, and what they have in the declared properties."""

    async def names(self, tenant: str, ontology: Ontology, asked: AskVocabulary) -> NamePage:
        """Nodes with their names, in the order of type, id and year. Raises `BadRequest`: `after` is the end of no page."""


@dataclass(frozen=True)
class StatementResult:
    """What a statement returned, as JSON has it."""

    rows: tuple[dict[str, Any], ...]
    truncated: bool


class StatementCheck(Protocol):
    """Decides whether a statement may be run; it takes some milliseconds of thinking."""

    def __call__(self, statement: str, parameters: Mapping[str, Any], tenant: str) -> Allowed:
        """The statement as it may be run. Raises `QueryRefused`: it may not."""


class QueryStore(Protocol):
    """A store that runs statements."""

    async def ready(self) -> None:
        """Return when the store has been there. Raises `Unavailable`: it has not come yet."""

    async def read(self, tenant: str, statement: str, parameters: Mapping[str, Any], most: int) -> StatementResult:
        """Run a reading statement once, as a user who can only read.

        Raises `QueryRefused` (the store does not take it; the detail helps to repair it), `TimedOut` (it took too long),
        `TooLarge` (a single row is larger than an answer may be), `Busy` (too many run already), `Unavailable` (the store is
        down).
        """


_LITERAL = re.compile(r"'(?:[^'\\]|\\.)*'?|\"(?:[^\"\\]|\\.)*\"?")
_LONGEST = 500


def redact_literals(statement: str) -> str:
    """A statement for a log: without its literal texts, which may be anybody's words, and cut."""
    return _LITERAL.sub("'…'", statement)[:_LONGEST]
