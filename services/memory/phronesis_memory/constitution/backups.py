"""Backups of a tenant's constitutional graph with its vectors, while everything runs, and restores (O-121, O-122, O-400)."""

from __future__ import annotations

import asyncio
import base64
import secrets
from collections.abc import AsyncIterator, Callable, Sequence
from datetime import datetime
from typing import Any
from uuid import uuid4

from phronesis_contracts import BadRequest, Principal
from phronesis_contracts.constitution.keeping import (
    Backup,
    BackupDone,
    BackupOrRestore,
    WrongConfirmation,
)
from phronesis_contracts.constitution.values import ConstitutionLink, ConstitutionNode

from ..adapters.constitution_restoring import RestoringVectors
from ..adapters.constitution_told import NodeStanding
from . import archive
from .following import Following
from .keeping import Bucket, ConstitutionGraph
from .texts import Facts, facts_of

KEPT = 7
"""Backups of one tenant that are kept; the oldest goes for a new one."""
_PAGE, _LINKS = 200, 1_000
_NODES = 200
"""Nodes whose vectors are put back together."""


class Backups:
    """Does what `backup.restore.v1` orders.

    Args:
        graph: the graph service.
        standing: what the records say.
        restoring: puts vectors back.
        following: makes records of nodes.
        bucket: where backups are.
        clock: the time.
    """

    def __init__(
        self,
        graph: ConstitutionGraph,
        standing: NodeStanding,
        restoring: RestoringVectors,
        following: Following,
        bucket: Bucket,
        clock: Callable[[], datetime],
    ) -> None:
        self._graph = graph
        self._standing = standing
        self._restoring = restoring
        self._following = following
        self._bucket = bucket
        self._clock = clock

    async def do(self, who: Principal, order: BackupOrRestore) -> BackupDone:
        """Do one operation for the caller's tenant.

        Raises:
            BadRequest: the order names no backup and needs one.
            NotFound: there is no such backup.
            BackupDamaged: its bytes are not those that were written.
            WrongConfirmation: a restore without the word that `verify` gave.
            Unavailable: a store does not answer; after a restore that ended so, restore again.
        """
        match order.operation:
            case "backup":
                return BackupDone(backups=(await self._backup(who.tenant),))
            case "list":
                return BackupDone(backups=tuple(await archive.listed(self._bucket, who.tenant)))
            case "verify":
                found = await archive.verify(self._bucket, self._named(who, order))
                return BackupDone(backups=(found.backup,), confirmation=_word(found.backup))
            case "restore":
                return await self._restore(who, self._named(who, order), order.confirmation or "")

    def _named(self, who: Principal, order: BackupOrRestore) -> str:
        if not order.backup_id or "/" in order.backup_id:
            raise BadRequest("name the backup", field="backupId")
        return archive.folder_of(who.tenant, order.backup_id)

    async def _backup(self, tenant: str) -> Backup:
        now = self._clock()
        id = f"{now:%Y%m%dT%H%M%SZ}-{secrets.token_hex(4)}"
        writer = archive.Writer(self._bucket, archive.folder_of(tenant, id))
        async for node in self._nodes(tenant):
            await writer.line("node", node.model_dump(mode="json"))
        after: ConstitutionLink | None = None
        while links := await self._graph.walk_links(tenant, after, _LINKS):
            after = links[-1]
            for link in links:
                await writer.line("link", link.model_dump(mode="json"))
        async for page in self._standing.kept(tenant):
            for row in page:
                await writer.line("vector", _told(row))
        made = await writer.close(id, now)
        for old in (await archive.listed(self._bucket, tenant))[KEPT:]:
            await archive.remove(self._bucket, archive.folder_of(tenant, old.id))
        return made

    async def _nodes(self, tenant: str) -> AsyncIterator[ConstitutionNode]:
        after = ""
        while page := await self._graph.walk(tenant, after, _PAGE):
            after = page[-1].id
            for node in page:
                yield node

    async def _restore(self, who: Principal, folder: str, confirmation: str) -> BackupDone:
        found = await archive.verify(self._bucket, folder)
        if confirmation != _word(found.backup):
            raise WrongConfirmation("a restore wants the word that verify gives for this backup", field="confirmation")
        nodes: list[ConstitutionNode] = []
        links: list[ConstitutionLink] = []
        vectors: dict[str, dict[str, Any]] = {}
        async for line in archive.lines(self._bucket, folder, found.parts):
            match line.pop("kind"):
                case "node":
                    nodes.append(ConstitutionNode.model_validate(line))
                case "link":
                    links.append(ConstitutionLink.model_validate(line))
                case "vector":
                    vectors[line["id"]] = line
        # Before the graph: its news then meets vectors that fit, and no model is called.
        await self._put_vectors(who.tenant, nodes, vectors)
        done = await self._put_graph(who, nodes, links)
        await self._agree(who.tenant)
        current = await self._restoring.current(who.tenant, list(vectors))
        return BackupDone(
            backups=(found.backup,),
            restored_nodes=done[0],
            restored_relationships=done[1],
            removed_nodes=done[2],
            restored_embeddings=current,
        )

    async def _put_vectors(self, tenant: str, nodes: Sequence[ConstitutionNode], vectors: dict[str, dict[str, Any]]) -> None:
        for start in range(0, len(nodes), _NODES):
            some = await asyncio.to_thread(_facts, nodes[start : start + _NODES])
            await self._restoring.put(tenant, [(facts, vectors[facts.id]) for facts in some if facts.id in vectors])

    async def _put_graph(
        self, who: Principal, nodes: Sequence[ConstitutionNode], links: Sequence[ConstitutionLink]
    ) -> tuple[int, int, int]:
        id, total = uuid4().hex, (0, 0, 0)
        parts: list[tuple[Sequence[ConstitutionNode], Sequence[ConstitutionLink]]] = [
            (part, ()) for part in archive.in_parts(nodes)
        ]
        parts += [((), links[start : start + _LINKS]) for start in range(0, len(links), _LINKS)]
        for number, (some, joined) in enumerate(parts or [((), ())], 1):
            last = number >= len(parts)
            done = await self._graph.restore(who, id, some, joined, last=last)
            total = (total[0] + done[0], total[1] + done[1], total[2] + done[2])
        return total

    async def _agree(self, tenant: str) -> None:
        """Make the records what the graph says now, whatever versions it gave to what it has again."""
        seen: set[str] = set()
        after = ""
        while page := await self._graph.walk(tenant, after, _PAGE):
            after = page[-1].id
            seen |= {node.id for node in page}
            await self._following.keep(tenant, page, trusted=True)
        await self._following.refresh(tenant, [id for id in await self._standing.ids(tenant) if id not in seen])


def _facts(nodes: Sequence[ConstitutionNode]) -> list[Facts]:
    return [facts_of(node) for node in nodes]


def _word(backup: Backup) -> str:
    return f"restore-{backup.digest[:16]}"


def _told(row: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": row["node_id"],
        "model": row["model"],
        "dimension": row["dimension"],
        "hash": row["embedded_hash"],
        "at": row["embedded_at"].isoformat(),
        "numbers": base64.b64encode(row["numbers"]).decode(),
    }
