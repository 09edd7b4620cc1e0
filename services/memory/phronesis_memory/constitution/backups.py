"""Backups of a tenant's constitutional graph with its vectors, restores, and how one is kept as bytes."""

from __future__ import annotations

import asyncio
import base64
import gzip
import hashlib
import json
import secrets
from collections.abc import AsyncIterator, Callable, Sequence
from datetime import datetime
from typing import Any
from uuid import uuid4

from phronesis_contracts import BadRequest, Message, NotFound, Principal
from phronesis_contracts.constitution.maintenance import Backup, BackupDamaged, BackupDone, BackupOrRestore, WrongConfirmation
from phronesis_contracts.constitution.values import ConstitutionLink, ConstitutionNode

from .nodes import NodeSnapshot, snapshot_of
from .ports import Bucket, ConstitutionGraph
from .projection import GraphFollower
from .store import RecordReader, VectorRestore

_PART = 4_000_000
"""Characters of one part before it is compressed."""
_MANIFEST = "manifest"
_BYTES_OF_PART, _NODES_OF_PART = 600_000, 200
"""Characters and nodes of one part of a restore: with room to spare below the greatest message."""


class Manifest(Message):
    """What a backup is made of."""

    backup: Backup
    parts: int


class BackupWriter:
    def __init__(self, bucket: Bucket, folder: str) -> None:
        self._bucket, self._folder = bucket, folder
        self._lines: list[str] = []
        self._size = 0
        self._digest = hashlib.sha256()
        self._counts: dict[str, int] = {}
        self.parts = 0
        self.bytes = 0

    async def line(self, kind: str, value: dict[str, Any]) -> None:
        text = json.dumps({"kind": kind, **value}, ensure_ascii=False, sort_keys=True)
        self._lines.append(text)
        self._size += len(text)
        self._counts[kind] = self._counts.get(kind, 0) + 1
        if self._size > _PART:
            await self._flush()

    async def close(self, id: str, created_at: datetime) -> Backup:
        """Write the rest, and the manifest."""
        await self._flush()
        made = Backup(
            id=id,
            created_at=created_at,
            nodes=self._counts.get("node", 0),
            relationships=self._counts.get("link", 0),
            embeddings=self._counts.get("vector", 0),
            bytes=self.bytes,
            digest=self._digest.hexdigest(),
        )
        manifest = Manifest(backup=made, parts=self.parts)
        await self._bucket.put(f"{self._folder}/{_MANIFEST}", manifest.model_dump_json().encode())
        return made

    async def _flush(self) -> None:
        if not self._lines:
            return
        text = "\n".join(self._lines)
        data = await asyncio.to_thread(lambda: gzip.compress(text.encode(), 1, mtime=0))
        self._digest.update(data)
        await self._bucket.put(f"{self._folder}/{self.parts:05}", data)
        self.parts += 1
        self.bytes += len(data)
        self._lines, self._size = [], 0


async def read_manifest(bucket: Bucket, folder: str) -> Manifest:
    """The manifest of a backup. Raises `NotFound`."""
    try:
        return Manifest.model_validate_json(await bucket.get(f"{folder}/{_MANIFEST}"))
    except NotFound as error:
        raise NotFound("there is no such backup") from error


async def read_lines(bucket: Bucket, folder: str, parts: int) -> AsyncIterator[dict[str, Any]]:
    """The things in a backup, each with its `kind`, in the order in which they were written."""
    for number in range(parts):
        data = await bucket.get(f"{folder}/{number:05}")
        for line in (await asyncio.to_thread(gzip.decompress, data)).decode().split("\n"):
            yield json.loads(line)


async def verify_backup(bucket: Bucket, folder: str) -> Manifest:
    """The manifest of a backup whose bytes are those that were written. Raises `NotFound`, `BackupDamaged`."""
    found = await read_manifest(bucket, folder)
    digest = hashlib.sha256()
    try:
        for number in range(found.parts):
            digest.update(await bucket.get(f"{folder}/{number:05}"))
    except NotFound as error:
        raise BackupDamaged("a part of the backup is gone") from error
    if digest.hexdigest() != found.backup.digest:
        raise BackupDamaged("the backup is not what was written")
    return found


async def list_backups(bucket: Bucket, tenant: str) -> list[Backup]:
    folders = [
        name.rpartition("/")[0] for name in await bucket.names() if _belongs_to(name, tenant) and name.endswith(_MANIFEST)
    ]
    found = [(await read_manifest(bucket, folder)).backup for folder in folders]
    return sorted(found, key=lambda backup: (backup.created_at, backup.id), reverse=True)


async def remove_backup(bucket: Bucket, folder: str) -> None:
    """Remove a backup, its manifest first, so that no half of one is listed."""
    mine = [name for name in await bucket.names() if name.startswith(f"{folder}/")]
    for name in sorted(mine, key=lambda name: (not name.endswith(_MANIFEST), name)):
        await bucket.delete(name)


def backup_folder(tenant: str, id: str) -> str:
    """How the names of a backup begin. A tenant's name holds no slash."""
    return f"{tenant}/{id}"


def _belongs_to(name: str, tenant: str) -> bool:
    return name.partition("/")[0] == tenant


def split_nodes(nodes: Sequence[ConstitutionNode]) -> list[list[ConstitutionNode]]:
    """Nodes in parts that a message holds."""
    parts: list[list[ConstitutionNode]] = []
    size = _BYTES_OF_PART
    for node in nodes:
        mine = len(node.model_dump_json())
        if size + mine > _BYTES_OF_PART or len(parts[-1]) >= _NODES_OF_PART:
            parts.append([])
            size = 0
        parts[-1].append(node)
        size += mine
    return parts


MAX_BACKUPS = 7
"""Backups of one tenant that are kept; the oldest goes for a new one."""
_PAGE, _LINKS = 200, 1_000
_NODES = 200
"""Nodes whose vectors are put back together."""


class Backups:
    """Does what `backup.restore.v1` orders."""

    def __init__(
        self,
        graph: ConstitutionGraph,
        reader: RecordReader,
        restoring: VectorRestore,
        following: GraphFollower,
        bucket: Bucket,
        clock: Callable[[], datetime],
    ) -> None:
        self._graph, self._reader, self._restoring = graph, reader, restoring
        self._following, self._bucket, self._clock = following, bucket, clock

    async def do(self, who: Principal, order: BackupOrRestore) -> BackupDone:
        """Do one operation for the caller's tenant.

        Raises `BadRequest` (the order names no backup and needs one), `NotFound` (there is no such backup), `BackupDamaged`
        (its bytes are not those that were written), `WrongConfirmation` (a restore without the word that `verify` gave),
        `Unavailable` (a store does not answer; after a restore that ended so, restore again).
        """
        match order.operation:
            case "backup":
                return BackupDone(backups=(await self._backup(who.tenant),))
            case "list":
                return BackupDone(backups=tuple(await list_backups(self._bucket, who.tenant)))
            case "verify":
                found = await verify_backup(self._bucket, self._named(who, order))
                return BackupDone(backups=(found.backup,), confirmation=_confirmation_word(found.backup))
            case "restore":
                return await self._restore(who, self._named(who, order), order.confirmation or "")

    def _named(self, who: Principal, order: BackupOrRestore) -> str:
        if not order.backup_id or "/" in order.backup_id:
            raise BadRequest("name the backup", field="backupId")
        return backup_folder(who.tenant, order.backup_id)

    async def _backup(self, tenant: str) -> Backup:
        now = self._clock()
        id = f"{now:%Y%m%dT%H%M%SZ}-{secrets.token_hex(4)}"
        writer = BackupWriter(self._bucket, backup_folder(tenant, id))
        async for node in self._nodes(tenant):
            await writer.line("node", node.model_dump(mode="json"))
        after: ConstitutionLink | None = None
        while links := await self._graph.walk_links(tenant, after, _LINKS):
            after = links[-1]
            for link in links:
                await writer.line("link", link.model_dump(mode="json"))
        async for page in self._reader.kept(tenant):
            for row in page:
                await writer.line("vector", _vector_line(row))
        made = await writer.close(id, now)
        for old in (await list_backups(self._bucket, tenant))[MAX_BACKUPS:]:
            await remove_backup(self._bucket, backup_folder(tenant, old.id))
        return made

    async def _nodes(self, tenant: str) -> AsyncIterator[ConstitutionNode]:
        after = ""
        while page := await self._graph.walk(tenant, after, _PAGE):
            after = page[-1].id
            for node in page:
                yield node

    async def _restore(self, who: Principal, folder: str, confirmation: str) -> BackupDone:
        found = await verify_backup(self._bucket, folder)
        if confirmation != _confirmation_word(found.backup):
            raise WrongConfirmation("a restore wants the word that verify gives for this backup", field="confirmation")
        nodes: list[ConstitutionNode] = []
        links: list[ConstitutionLink] = []
        vectors: dict[str, dict[str, Any]] = {}
        async for line in read_lines(self._bucket, folder, found.parts):
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
            some = await asyncio.to_thread(_snapshots, nodes[start : start + _NODES])
            await self._restoring.put(tenant, [(facts, vectors[facts.id]) for facts in some if facts.id in vectors])

    async def _put_graph(
        self, who: Principal, nodes: Sequence[ConstitutionNode], links: Sequence[ConstitutionLink]
    ) -> tuple[int, int, int]:
        id, total = uuid4().hex, (0, 0, 0)
        parts: list[tuple[Sequence[ConstitutionNode], Sequence[ConstitutionLink]]] = [(part, ()) for part in split_nodes(nodes)]
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
        await self._following.refresh(tenant, [id for id in await self._reader.ids(tenant) if id not in seen])


def _snapshots(nodes: Sequence[ConstitutionNode]) -> list[NodeSnapshot]:
    return [snapshot_of(node) for node in nodes]


def _confirmation_word(backup: Backup) -> str:
    return f"restore-{backup.digest[:16]}"


def _vector_line(row: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": row["node_id"],
        "model": row["model"],
        "dimension": row["dimension"],
        "hash": row["embedded_hash"],
        "at": row["embedded_at"].isoformat(),
        "numbers": base64.b64encode(row["numbers"]).decode(),
    }
