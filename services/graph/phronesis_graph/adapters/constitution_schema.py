"""The schema of the constitutional graph: made from the registry, the same again however often it is declared."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from phronesis_contracts.constitution.registry import LABELS, NODE_LABEL
from phronesis_contracts.constitution.relationships import RELATIONSHIPS

from ..constitution.records import ROI
from ..settings import Dialect


@dataclass(frozen=True)
class Index:
    """An index on one property of the nodes of a label."""

    name: str
    label: str
    property: str


INDEXES = (
    Index("odei_node_status", NODE_LABEL, "status"),
    Index("odei_node_layer", NODE_LABEL, "layer"),
    Index("odei_node_type", NODE_LABEL, "type"),
    Index("odei_node_updated", NODE_LABEL, "updatedAt"),
    Index("task_due_date", "Task", "dueDate"),
    Index("decision_roi", "Decision", ROI),
)
"""Every index beside the one of the unique key, under the seed's names (O-077 to O-082)."""
KEY = Index("odei_node_key", NODE_LABEL, "key")
"""The index of the unique key (O-064), which finds a node by its tenant and id."""


def constitution_schema(dialect: Dialect) -> Iterator[str]:
    """Statements that declare it, each of which changes nothing where it was run before (O-083)."""
    yield f"CREATE CONSTRAINT {KEY.name} IF NOT EXISTS FOR (n:{NODE_LABEL}) REQUIRE n.key IS UNIQUE"
    if dialect is Dialect.ARCADEDB:
        # A pair of labels there is a type of its own, and a relationship type is schema, as in `schema`.
        pairs = ", ".join(f"(n{i}:{NODE_LABEL}:`{label}` {{key: '/{label}'}})" for i, label in enumerate(LABELS))
        yield f"CREATE {pairs} DETACH DELETE {', '.join(f'n{i}' for i, _ in enumerate(LABELS))}"
        paths = ", ".join(f"(a)-[:{name}]->(b)" for name in RELATIONSHIPS)
        yield f"CREATE (a:{NODE_LABEL} {{key: '/from'}}), (b:{NODE_LABEL} {{key: '/to'}}), {paths} DETACH DELETE a, b"
        # An index there makes its property one of texts, unless it was declared as something else.
        yield f"CREATE CONSTRAINT decision_roi_number IF NOT EXISTS FOR (n:`Decision`) REQUIRE n.{ROI} IS :: FLOAT"
    for index in INDEXES:
        yield f"CREATE INDEX {index.name} IF NOT EXISTS FOR (n:`{index.label}`) ON (n.{index.property})"
    # One of layers alone holds those of every tenant.
    yield f"CREATE INDEX odei_node_tenant_layer IF NOT EXISTS FOR (n:{NODE_LABEL}) ON (n.tenant, n.layer)"
