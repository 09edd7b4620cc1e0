"""What every message of the constitutional graph is made of: nodes, relationships, and the figures told with them."""

from __future__ import annotations

from typing import Any

from pydantic import AwareDatetime, ConfigDict, Field
from pydantic.alias_generators import to_camel

from ..messages import Message
from ..principal import Agent
from .registry import Layer, Lifecycle

READERS = frozenset({Agent.DISCUSS, Agent.DECISIONS, Agent.EXECUTE, Agent.MIND, Agent.MAESTRO})
"""Agents that may read the graph; which of its tools an agent has, its allow-list says."""
EVERY_LAYER = frozenset({Agent.MAESTRO})
"""Agents that may change every layer."""
WRITERS: dict[Layer, frozenset[Agent]] = {
    Layer.FOUNDATION: EVERY_LAYER,
    Layer.VISION: EVERY_LAYER,
    Layer.STRATEGY: EVERY_LAYER | {Agent.DECISIONS},
    Layer.TACTICS: EVERY_LAYER | {Agent.EXECUTE},
    Layer.EXECUTION: EVERY_LAYER | {Agent.EXECUTE, Agent.DECISIONS},
    Layer.TRACK: EVERY_LAYER | {Agent.EXECUTE},
    Layer.MIND: EVERY_LAYER | {Agent.MIND},
}
"""Agents that may write nodes of each layer. Nobody's agent changes what it is held to."""
LINKERS = EVERY_LAYER | {Agent.DECISIONS, Agent.EXECUTE, Agent.MIND}
"""Agents that may join nodes: those that may write the node which the relationship leads from."""
MAX_TOKENS = 25_000
"""Tokens of one answer, by the measure of `tokens.py`; what is longer is cut, with a cursor."""
MAX_TEXT = 20_000
"""Characters of one text of a node."""


class Camel(Message):
    """A message whose fields have the seed's spelling on the wire: `excludeFields`, `topK`."""

    model_config = ConfigDict(alias_generator=to_camel, validate_by_name=True, validate_by_alias=True, serialize_by_alias=True)


class Asked(Camel):
    """A question or an order; a field that there is not is refused, so that a misspelt one is noticed."""

    model_config = ConfigDict(extra="forbid")


def absent() -> Any:
    """A field that is left out of the answer where it has no value, and is not sent as null."""
    return Field(default=None, exclude_if=lambda value: value is None)


class ConstitutionNode(Camel):
    """A node, with as many of its fields as were asked for. Its typed properties stand beside the common ones."""

    model_config = ConfigDict(extra="allow")

    id: str
    type: str
    layer: Layer
    title: str
    status: str | None = absent()
    summary: str | None = absent()
    description: str | None = absent()
    created_at: AwareDatetime | None = absent()
    updated_at: AwareDatetime | None = absent()
    version: int | None = absent()
    """Grows by one with each change."""
    properties: dict[str, Any] | None = absent()
    """What the type does not declare."""
    metadata: dict[str, Any] | None = absent()
    provenance: dict[str, Any] | None = absent()
    """Who made it, from what and when; its first words are the service's own."""


class ConstitutionLink(Camel):
    """A relationship."""

    id: str
    type: str
    from_id: str
    to_id: str


class Mention(Camel):
    """A node in few words."""

    id: str
    type: str
    title: str
    status: str | None = absent()
    relationship: str | None = absent()
    """How it is joined to the node that it is listed with."""


class ListStats(Camel):
    """What a list came to."""

    total_nodes: int = 0
    by_type: dict[str, int] = Field(default_factory=dict)
    token_estimate: int = 0
    """Tokens of the items and relationships as they are sent."""


class Chosen(Asked):
    """What a list or a search is narrowed to, in the store and before anything is cut."""

    layers: tuple[Layer, ...] = Field(default=(), max_length=7)
    """All where none is named."""
    types: tuple[str, ...] = Field(default=(), max_length=35)
    """All where none is named; in whatever case."""
    status: Lifecycle = Lifecycle.ACTIVE


class NodeId(Asked):
    """One node by id."""

    id: str = Field(min_length=1, max_length=200)
