"""The rules of a tenant in the store."""

from __future__ import annotations

from collections.abc import Sequence

from phronesis_contracts.constitution.kinds import Lifecycle
from phronesis_contracts.constitution.registry import NODE_LABEL
from phronesis_contracts.constitution.values import ConstitutionNode

from ..constitution.guardrails import RULES
from ..constitution.records import node_of
from .bolt import Bolt, Transaction
from .schema import Schema

_MOST = 5_000
"""Rules that one tenant is held to."""
_RULES = (
    f"MATCH (n:{NODE_LABEL}) WHERE n.type IN $types AND n.tenant = $tenant AND n.lifecycle = $lifecycle"
    " RETURN properties(n) AS node ORDER BY n.createdAt, n.id LIMIT $most"
)


class BoltRules:
    """The `ConstitutionRules` over Bolt."""

    def __init__(self, bolt: Bolt, schema: Schema) -> None:
        self._bolt = bolt
        self._schema = schema

    async def read(self, tenant: str) -> Sequence[ConstitutionNode]:
        """Active guardrails and principles; see the port."""
        await self._schema.declared()
        scope = {"tenant": tenant, "types": list(RULES), "lifecycle": Lifecycle.ACTIVE.value, "most": _MOST}

        async def work(transaction: Transaction) -> list[ConstitutionNode]:
            return [node_of(row["node"]) for row in await transaction.rows(_RULES, **scope)]

        return await self._bolt.read(work)
