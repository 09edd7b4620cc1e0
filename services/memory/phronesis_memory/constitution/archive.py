"""A backup as bytes: compressed JSON lines in parts, and a manifest that is written last."""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import json
from collections.abc import AsyncIterator, Sequence
from datetime import datetime
from typing import Any

from phronesis_contracts import Message, NotFound
from phronesis_contracts.constitution.keeping import Backup, BackupDamaged
from phronesis_contracts.constitution.values import ConstitutionNode

from .keeping import Bucket

_PART = 4_000_000
"""Characters of one part before it is compressed."""
_MANIFEST = "manifest"
_SENT, _NODES = 600_000, 200
"""Characters and nodes of one part of a restore: with room to spare below the greatest message."""


class Manifest(Message):
    """What a backup is made of."""

    backup: Backup
    parts: int


class Writer:
    """Writes the lines of one backup.

    Args:
        bucket: where to.
        folder: the tenant's backup, as names begin.
    """

    def __init__(self, bucket: Bucket, folder: str) -> None:
        self._bucket = bucket
        self._folder = folder
        self._lines: list[str] = []
        self._size = 0
        self._digest = hashlib.sha256()
        self._counts: dict[str, int] = {}
        self.parts = 0
        self.bytes = 0

    async def line(self, kind: str, value: dict[str, Any]) -> None:
        """Add one thing of a kind."""
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


async def manifest(bucket: Bucket, folder: str) -> Manifest:
    """The manifest of a backup. Raises `NotFound`."""
    try:
        return Manifest.model_validate_json(await bucket.get(f"{folder}/{_MANIFEST}"))
    except NotFound as error:
        raise NotFound("there is no such backup") from error


async def lines(bucket: Bucket, folder: str, parts: int) -> AsyncIterator[dict[str, Any]]:
    """The things in a backup, each with its `kind`, in the order in which they were written."""
    for number in range(parts):
        data = await bucket.get(f"{folder}/{number:05}")
        for line in (await asyncio.to_thread(gzip.decompress, data)).decode().split("\n"):
            yield json.loads(line)


async def verify(bucket: Bucket, folder: str) -> Manifest:
    """The manifest of a backup whose bytes are those that were written.

    Raises:
        NotFound: there is no such backup.
        BackupDamaged: they are not.
    """
    found = await manifest(bucket, folder)
    digest = hashlib.sha256()
    try:
        for number in range(found.parts):
            digest.update(await bucket.get(f"{folder}/{number:05}"))
    except NotFound as error:
        raise BackupDamaged("a part of the backup is gone") from error
    if digest.hexdigest() != found.backup.digest:
        raise BackupDamaged("the backup is not what was written")
    return found


async def listed(bucket: Bucket, tenant: str) -> list[Backup]:
    """The whole backups of a tenant, the latest first."""
    folders = [name.rpartition("/")[0] for name in await bucket.names() if _is_of(name, tenant) and name.endswith(_MANIFEST)]
    found = [(await manifest(bucket, folder)).backup for folder in folders]
    return sorted(found, key=lambda backup: (backup.created_at, backup.id), reverse=True)


async def remove(bucket: Bucket, folder: str) -> None:
    """Remove a backup, its manifest first, so that no half of one is listed."""
    mine = [name for name in await bucket.names() if name.startswith(f"{folder}/")]
    for name in sorted(mine, key=lambda name: (not name.endswith(_MANIFEST), name)):
        await bucket.delete(name)


def folder_of(tenant: str, id: str) -> str:
    """How the names of a backup begin. A tenant's name holds no slash."""
    return f"{tenant}/{id}"


def _is_of(name: str, tenant: str) -> bool:
    return name.partition("/")[0] == tenant


def in_parts(nodes: Sequence[ConstitutionNode]) -> list[list[ConstitutionNode]]:
    """Nodes in parts that a message holds."""
    parts: list[list[ConstitutionNode]] = []
    size = _SENT
    for node in nodes:
        mine = len(node.model_dump_json())
        if size + mine > _SENT or len(parts[-1]) >= _NODES:
            parts.append([])
            size = 0
        parts[-1].append(node)
        size += mine
    return parts
