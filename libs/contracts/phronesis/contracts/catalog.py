"""Every contract there is, in one place: permissions, streams, documents and routes are made from it."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from . import (
    cypher,
    experiments,
    gateway,
    graph,
    instructions,
    knowledge_graph,
    media,
    memory,
    orchestrator,
    releases,
    scoped_memory,
    service,
    twin,
)
from .messages import Event, Job, Out, Rpc
from .tools import Tool

_MODULES: tuple[ModuleType, ...] = (
    gateway,
    orchestrator,
    memory,
    scoped_memory,
    instructions,
    releases,
    experiments,
    graph,
    cypher,
    knowledge_graph,
    twin,
    media,
)


def _values(kind: type[Any]) -> tuple[Any, ...]:
    named = [v for m in _MODULES for v in vars(m).values() if isinstance(v, kind)]
    shared = [v for table in (service.HEALTH, service.SPANS, service.AUDITED) for v in table.values() if isinstance(v, kind)]
    return tuple(dict.fromkeys(named + shared))


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
