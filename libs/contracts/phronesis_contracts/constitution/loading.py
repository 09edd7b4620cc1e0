"""Contract that writes a whole constitutional graph, many nodes at a time."""

from __future__ import annotations

from pydantic import ConfigDict, Field

from ..messages import Rpc
from ..principal import Role
from ..tools import Risk, Tool
from .values import Asked, Camel
from .writes import CreateConstitutionNode, Relate

NODES = 250
"""Nodes of one part."""
RELATIONSHIPS = 500
"""Relationships of one part: as many as one announcement of changes holds."""


class LoadNode(CreateConstitutionNode):
    """A node with its type; its typed properties stand beside the common ones, as its create tool takes them."""

    model_config = ConfigDict(extra="allow")

    type: str = Field(min_length=1, max_length=64)
    id: str = Field(min_length=1, max_length=200, pattern=r"^[A-Za-z0-9][A-Za-z0-9_.:-]*$")


class LoadConstitution(Asked):
    """A part of a graph, written in one transaction: what has to go, then nodes, then relationships.

    All is held to the registry, and nothing is written where one thing breaks it. A node that is there already gets the
    fields that are given; what is as it was stays as it is, with its version. Guardrails may come with it and do not stop it.
    """

    remove: tuple[str, ...] = Field(default=(), max_length=NODES)
    """Ids of nodes to remove for good, with their relationships; unknown ones are passed over."""
    nodes: tuple[LoadNode, ...] = Field(default=(), max_length=NODES)
    relationships: tuple[Relate, ...] = Field(default=(), max_length=RELATIONSHIPS)


class ConstitutionLoaded(Camel):
    """What the part changed."""

    created: int = 0
    updated: int = 0
    unchanged: int = 0
    removed: int = 0
    relationships: int = 0
    """Relationships that were not there before."""


LOAD = Rpc("graph.v1.constitution.load", LoadConstitution, ConstitutionLoaded, timeout=60.0, max_bytes=1_000_000)

LOAD_TOOL = Tool(
    "constitution.load.v1",
    "Write a part of a constitutional graph: up to 250 nodes and 500 relationships in one transaction.",
    LOAD,
    risk=Risk.HIGH,
    roles=frozenset({Role.ADMIN}),
    irreversible=True,
)
