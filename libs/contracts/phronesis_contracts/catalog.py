"""Every contract there is, in one place: permissions, streams, documents and routes are made from it."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from . import (
    agents,
    answers,
    approvals,
    deletions,
    documents,
    episodes,
    experiments,
    facts,
    instructions,
    knowledge_graph,
    ledger,
    media,
    memories,
    memory,
    ontology,
    orchestrator,
    outside,
    service,
    tasks,
    twin,
)
from .constitution import insight, lists, maintenance, paths, search, session, writes
from .messages import Event, Job, Out, Rpc
from .tools import Tool

_MODULES: tuple[ModuleType, ...] = (
    service,
    deletions,
    orchestrator,
    approvals,
    tasks,
    answers,
    ledger,
    outside,
    memory,
    memories,
    episodes,
    facts,
    documents,
    instructions,
    agents,
    experiments,
    twin,
    ontology,
    knowledge_graph,
    writes,
    lists,
    paths,
    search,
    insight,
    maintenance,
    session,
    media,
)

_TABLES = (
    *(service.HEALTH, service.SPANS, service.AUDITED, writes.CREATE, writes.UPDATE, lists.LISTS),
    *(deletions.USER_DATA, deletions.USER_ERASE, deletions.AGED_DROP),
)
"""Contracts that are made in rows: one for each service, or for each type or layer of the registry."""


def _values(kind: type[Any]) -> tuple[Any, ...]:
    named = [v for m in _MODULES for v in vars(m).values() if isinstance(v, kind)]
    rows = [v for table in _TABLES for v in table.values()]
    inside = [v.rpc for v in (*named, *rows) if isinstance(v, Tool) and kind is Rpc]
    return tuple(dict.fromkeys([*named, *(v for v in rows if isinstance(v, kind)), *inside]))


RPCS: tuple[Rpc[Any, Any], ...] = _values(Rpc)
JOBS: tuple[Job[Any], ...] = _values(Job)
EVENTS: tuple[Event[Any], ...] = _values(Event)
OUTS: tuple[Out[Any], ...] = _values(Out)
TOOLS: dict[str, Tool[Any, Any]] = {t.name: t for t in _values(Tool)}

ASKS: dict[str, tuple[str, ...]] = {
    "gateway": ("orchestrator", "memory", "instructions", "graph", "media"),
    "orchestrator": ("memory", "instructions", "graph", "media"),
    "memory": ("graph",),
    "instructions": (),
    "graph": (),
    "media": (),
}
"""The arrows of the architecture: who may ask whom. Nothing else is permitted by the server."""
