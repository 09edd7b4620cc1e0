"""What tests of the constitutional graph share: its writes on a real store, and every property of every type."""

from __future__ import annotations

from typing import Any

from phronesis_bus import Call
from phronesis_contracts import Principal, ServiceError
from phronesis_contracts.constitution import maintenance, writes
from phronesis_contracts.constitution.insight import CheckPolicy, PolicyChecked
from phronesis_contracts.constitution.registry import NODE_LABEL, TYPES, Kind, NodeType
from phronesis_contracts.constitution.values import ConstitutionLink, ConstitutionNode
from phronesis_contracts.constitution.writes import ConstitutionChanged, NodeWritten
from phronesis_contracts.orchestrator import Audited
from phronesis_graph.constitution.guardrails import RuleCache
from phronesis_graph.constitution.load_store import BoltLoads
from phronesis_graph.constitution.records import link_from_row, node_from_row, node_key
from phronesis_graph.constitution.store import BoltConstitution, BoltLinks, BoltRules, WriteTurns
from phronesis_graph.constitution.writes import LoadHandlers, NodeHandlers, PolicyHandlers, RelationshipHandlers
from phronesis_graph.knowledge.store import StoreNames
from tests.support import graph
from tests.support.bus import somebody
from tests.support.personas import Persona

_TOLD = {
    Kind.TEXT: "Worth its own words",
    Kind.TEXTS: ["one", "two"],
    Kind.NUMBER: -3.25,
    Kind.SHARE: 0.75,
    Kind.HOURS: 12.5,
    Kind.PRIORITY: 4,
    Kind.DATE: "2026-11-22",
    Kind.ROI: {"total": -2.5},
}


def declared(kind: NodeType) -> dict[str, Any]:
    """A value for each property that a type declares, as messages have it."""
    return {one.name: _TOLD[one.kind] for one in kind.properties}


class Constitution:
    """The graph service's writes, for one caller.

    Args:
        stores: the graph service's stores.
        who: the caller; an admin of a tenant of its own by default.
        ruling: the rules that another caller of the same process is held to.
    """

    def __init__(self, stores: graph.Stores, who: Principal | None = None, ruling: RuleCache | None = None) -> None:
        self.stores = stores
        self.who = who or somebody(**Persona.ADMIN.rights)
        self.refusals: list[tuple[str, str]] = []
        self.woken = 0
        turn, names = WriteTurns(stores.schema), StoreNames(stores.bolt)
        self.ruling = ruling or RuleCache(BoltRules(stores.bolt, stores.schema))
        self.writing = NodeHandlers(BoltConstitution(stores.bolt, turn, names), self.ruling, self._refuse, self._wake)
        self.relating = RelationshipHandlers(BoltLinks(stores.bolt, turn, names), self._wake)
        self.loading = LoadHandlers(BoltLoads(stores.bolt, turn, names), self.ruling, self._wake)

    def by(self, role: Persona) -> Constitution:
        """The same graph, written by somebody of another role."""
        return Constitution(self.stores, somebody(**role.rights, tenant=self.who.tenant), self.ruling)

    async def create(self, type: str, key: str | None = None, /, **given: Any) -> NodeWritten:
        """What the type's tool answers."""
        request = writes.CREATE[type].rpc.input.model_validate({"title": f"A {type}", **given})
        return await self.writing.create(TYPES[type], self._call(key), request)

    async def node(self, type: str, /, **given: Any) -> str:
        """The id of a new node."""
        return (await self.create(type, **given)).node.id

    async def update(self, type: str, id: str, key: str | None = None, /, **given: Any) -> NodeWritten:
        """What the type's tool answers."""
        request = writes.UPDATE[type].rpc.input.model_validate({"id": id, **given})
        return await self.writing.update(TYPES[type], self._call(key), request)

    async def update_node(self, id: str, /, **given: Any) -> NodeWritten:
        """What the tool for every type answers."""
        return await self.writing.update_node(self._call(), writes.UpdateAnyNode.model_validate({"id": id, **given}))

    async def delete(self, id: str, key: str | None = None) -> writes.NodeDeletedForGood:
        """What the tool answers."""
        return await self.writing.delete_node(self._call(key), writes.DeleteConstitutionNode(id=id))

    async def relate(self, source: str, type: str, target: str, key: str | None = None) -> writes.Related:
        """What the tool answers."""
        return await self.relating.relate(self._call(key), writes.Relate(from_id=source, type=type, to_id=target))

    async def unrelate(self, id: str, key: str | None = None) -> ConstitutionLink:
        """The relationship that went."""
        return (await self.relating.unrelate(self._call(key), writes.Unrelate(id=id))).relationship

    async def check(self, text: str, **given: Any) -> PolicyChecked:
        """What the rules say to a text."""
        return await PolicyHandlers(self.ruling).check_policy(self._call(), CheckPolicy(text=text, **given))

    async def load(self, key: str | None = None, /, **part: Any) -> writes.ConstitutionLoaded:
        """What one part of a graph changed."""
        return await self.loading.load(self._call(key), writes.LoadConstitution.model_validate(part))

    async def restore(self, restore_id: str, /, key: str | None = None, **part: Any) -> maintenance.GraphRestored:
        """What one part of a restore changed."""
        return await self.loading.restore(self._call(key), maintenance.RestoreGraph(restore_id=restore_id, **part))

    async def read(self, id: str) -> ConstitutionNode | None:
        """A node as the store has it."""
        statement = f"MATCH (n:{NODE_LABEL} {{key: $key}}) RETURN properties(n) AS node"
        rows = await self.stores.run(statement, key=node_key(self.who.tenant, id))
        return node_from_row(rows[0]["node"]) if rows else None

    async def nodes(self) -> list[ConstitutionNode]:
        """All nodes of the tenant, by id."""
        statement = f"MATCH (n:{NODE_LABEL}) WHERE n.tenant = $tenant RETURN properties(n) AS node ORDER BY n.id"
        return [node_from_row(row["node"]) for row in await self.stores.run(statement, tenant=self.who.tenant)]

    async def links(self) -> list[ConstitutionLink]:
        """All relationships of the tenant, by id."""
        statement = (
            f"MATCH (a:{NODE_LABEL})-[r]->(b:{NODE_LABEL}) WHERE a.tenant = $tenant"
            " RETURN r.id AS id, type(r) AS type, a.id AS fromId, b.id AS toId ORDER BY r.id"
        )
        return [link_from_row(row) for row in await self.stores.run(statement, tenant=self.who.tenant)]

    async def news(self) -> list[ConstitutionChanged]:
        """What waits to be announced, oldest first."""
        return [ConstitutionChanged.model_validate_json(body) for body in await self._unsent("constitution.changed")]

    async def entries(self) -> list[Audited]:
        """What waits for the audit trail, oldest first."""
        return [Audited.model_validate_json(body) for body in await self._unsent("audited")]

    async def _unsent(self, subject: str) -> list[bytes]:
        rows = await self.stores.outbox.unsent(10_000)
        return [row.body for row in rows if row.tenant == self.who.tenant and row.subject.endswith(subject)]

    def _call(self, key: str | None = None) -> Call:
        return Call(self.who, "gateway", key)

    async def _refuse(self, who: Principal, tool: str, arguments: dict[str, Any], error: ServiceError) -> None:
        assert who == self.who
        self.refusals.append((tool, error.code))

    def _wake(self) -> None:
        self.woken += 1
