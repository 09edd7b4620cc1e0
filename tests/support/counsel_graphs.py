"""The graphs of the constitutional question sets behind fake neighbours, and what an agent says of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evals.constitution import FOLDER, Domain
from phronesis_contracts import Unavailable
from phronesis_contracts.constitution.lists import (
    LIST_FOUNDATION,
    LIST_VISION,
    LISTS,
    FoundationListed,
    LayerListed,
    VisionListed,
    VisionNode,
)
from phronesis_contracts.constitution.paths import SUBGRAPH, SubgraphFound
from phronesis_contracts.constitution.registry import TYPES, Layer
from phronesis_contracts.constitution.values import ConstitutionLink, ConstitutionNode, ListStats
from phronesis_contracts.orchestrator import Reply

from .counsel import OWNERS, ask, stage

DOMAINS = {name: Domain(FOLDER, name) for name in ("clinic", "theatre")}


def owners(domain: Domain) -> dict[str, Any]:
    """Neighbours that list a domain's graph and its relationships; every other tool is away."""
    nodes = [_node(told) for told in domain.nodes]
    links = tuple(
        ConstitutionLink(id=str(at), type=kind, from_id=start, to_id=end) for at, (start, kind, end) in enumerate(domain.links)
    )
    active = [node for node in nodes if node.status not in ("archived", "deprecated")]
    foundation = tuple(node for node in active if node.layer is Layer.FOUNDATION)
    vision = tuple(VisionNode(**node.model_dump()) for node in active if node.layer is Layer.VISION)
    told: dict[str, Any] = {
        **dict.fromkeys(OWNERS, Unavailable()),
        LIST_FOUNDATION.subject: FoundationListed(items=foundation, stats=ListStats()),
        LIST_VISION.subject: VisionListed(items=vision, stats=ListStats()),
        SUBGRAPH.subject: SubgraphFound(nodes=(), relationships=links, stats=ListStats()),
    }
    for layer, tool in LISTS.items():
        told[tool.rpc.subject] = LayerListed(items=tuple(node for node in nodes if node.layer is layer), stats=ListStats())
    return told


def _node(told: Mapping[str, Any]) -> ConstitutionNode:
    status = told.get("status") or ("todo" if told["type"] == "task" else "active")
    return ConstitutionNode(**{**told, "layer": TYPES[told["type"]].layer, "status": status})


async def answer(domain: str, text: str, agent: str = "execute") -> Reply:
    """What an agent replies to one message on a domain's graph, without a model."""
    return await ask(stage(agent, **owners(DOMAINS[domain])), text)
