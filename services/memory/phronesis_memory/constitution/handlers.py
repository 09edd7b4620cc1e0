"""What memory does for the constitutional graph's vectors, one method for each message."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from phronesis_bus import Call, News
from phronesis_contracts.constitution import similarity
from phronesis_contracts.constitution.keeping import (
    BACKUP_RESTORE_TOOL,
    REGENERATE_TOOL,
    AskEmbeddings,
    BackupDone,
    BackupOrRestore,
    EmbeddingCount,
    EmbeddingsTold,
    IndexScope,
    Regenerate,
    Regenerated,
    SpotCheck,
)
from phronesis_contracts.constitution.writes import ConstitutionChanged

from ..adapters.constitution_audit import KeepingAudit
from ..adapters.constitution_schedule import NodeSchedule
from ..adapters.constitution_told import NodeStanding
from ..adapters.halves import received
from .backups import Backups
from .following import Following
from .ports import Chosen, LayerState, NodeVectors
from .regenerating import Regenerating


class KeepingHandlers:
    """The handlers.

    Args:
        following: the follower of the graph.
        vectors: the vectors.
        standing: what the records say.
        schedule: the runs by the clock.
        regenerating: makes vectors anew.
        backups: makes backups and restores them.
        audit: where it is entered who did so.
        dimension: numbers in the vectors of the service's model.
    """

    def __init__(
        self,
        following: Following,
        vectors: NodeVectors,
        standing: NodeStanding,
        schedule: NodeSchedule,
        regenerating: Regenerating,
        backups: Backups,
        audit: KeepingAudit,
        dimension: int,
    ) -> None:
        self._following = following
        self._vectors = vectors
        self._standing = standing
        self._schedule = schedule
        self._regenerating = regenerating
        self._backups = backups
        self._audit = audit
        self._dimension = dimension

    async def on_constitution_changed(self, news: News, event: ConstitutionChanged) -> None:
        """Make the records of changed nodes what the graph says."""
        await self._following.follow(news.tenant, event)

    async def embeddings(self, call: Call, request: AskEmbeddings) -> EmbeddingsTold:
        """Records of vectors, counts, scopes and batches."""
        tenant = call.who.tenant
        counts, tokens = await self._standing.counts(tenant)
        state = await self._vectors.state(tenant)
        return EmbeddingsTold(
            records=await self._standing.records(tenant, request.ids) if request.ids else (),
            counts=counts,
            scopes=tuple(_scope(layer, self._dimension) for layer in state),
            schedule=await self._schedule.told(),
            backlog=sum(layer.waiting for layer in state),
            tokens=tokens,
            spot_checks=await self._spot(tenant, request.spot_check),
            findings=_findings(counts, self._dimension),
        )

    async def regenerate(self, call: Call, request: Regenerate) -> Regenerated:
        """Make vectors anew, and make the index agree with the graph."""
        await self._audit.enter(call.who, REGENERATE_TOOL.name, request.model_dump(mode="json"))
        return await self._regenerating.regenerate(call.who.tenant, request)

    async def backup_restore(self, call: Call, request: BackupOrRestore) -> BackupDone:
        """Back up the graph with its vectors, or restore it."""
        if request.operation in ("backup", "restore"):
            which = {"operation": request.operation, "backup_id": request.backup_id}
            await self._audit.enter(call.who, BACKUP_RESTORE_TOOL.name, which)
        return await self._backups.do(call.who, request)

    async def _spot(self, tenant: str, most: int) -> tuple[SpotCheck, ...]:
        rows = await self._standing.spot(tenant, most) if most else []
        return tuple([await self._checked(tenant, row) for row in rows])

    async def _checked(self, tenant: str, row: dict[str, Any]) -> SpotCheck:
        id, norm, rank = row["node_id"], float(row["norm"]), 0
        if row["dimension"] == self._dimension and norm > 0:
            near = await self._vectors.nearest(tenant, received(row["numbers"]), Chosen(lifecycle=None), 10)
            own = next((hit.cosine for hit in near if hit.id == id), None)
            rank = 0 if own is None else 1 + sum(hit.cosine > own + similarity.ROUNDING for hit in near)
        return SpotCheck(node_id=id, dimension=row["dimension"], norm=norm, rank=rank)


def _scope(layer: LayerState, dimension: int) -> IndexScope:
    state = "POPULATING" if layer.populating else "ONLINE"
    return IndexScope.model_validate(
        {"name": layer.name, "layer": layer.layer, "vectors": layer.vectors, "dimension": dimension, "state": state}
    )


def _findings(counts: Sequence[EmbeddingCount], dimension: int) -> tuple[str, ...]:
    """What keeps one from relying on the vectors (O-368). No vector without a direction is ever stored."""
    findings = []
    for count in counts:
        wrong = sum(nodes for size, nodes in count.dimensions.items() if size != str(dimension))
        due = sum(nodes for state, nodes in count.states.items() if state != "skipped")
        lacking = due - sum(count.dimensions.values())
        if wrong:
            findings.append(f"{wrong} vectors of type {count.type} do not have {dimension} numbers")
        if lacking > 0:
            findings.append(f"{lacking} nodes of type {count.type} have no vector")
    return tuple(findings)
